module kirin/http2_go_client

go 1.24
