# frozen_string_literal: true

# An action for each thing that Rails can do with a request and a response.
class PagesController < ApplicationController
  skip_forgery_protection only: %i[echo json]
  http_basic_authenticate_with name: "ann", password: "oak", realm: "members", only: :secret
  before_action(only: :member) { redirect_to root_url, alert: "no member" unless session[:visits] }

  def visits
    render plain: "visit #{session[:visits] = session.fetch(:visits, 0) + 1}"
  end

  def finish
    reset_session
    head :ok
  end

  def renewed
    visits = session[:visits]
    reset_session
    session[:visits] = visits
    render plain: "a new session"
  end

  def jar
    before = [cookies[:plain], cookies.signed[:signed], cookies.encrypted[:secret]]
    cookies[:plain] = { value: "ä; b=c", path: "/", httponly: true }
    cookies.signed[:signed] = { value: "oak", expires: 1.day }
    cookies.encrypted[:secret] = { value: { "name" => "Käse" }, same_site: :strict }
    cookies.delete(:old)
    render plain: "before: #{before.inspect}"
  end

  def environment
    render json: {
      url: request.url, path: request.fullpath, original: request.original_url, ip: request.ip,
      remote: request.remote_ip, host: request.host_with_port, ssl: request.ssl?,
      params: request.query_parameters, method: request.request_method, agent: request.user_agent,
      formats: request.formats.map(&:to_s), books: books_url, xhr: request.xhr?.present?
    }
  end

  def echo
    files = params.to_unsafe_h.transform_values do |value|
      next value unless value.respond_to?(:read)

      bytes = value.read
      [value.original_filename, value.content_type, bytes.bytesize, bytes.sum(32), value.class.name]
    end
    render json: { params: files, raw: request.raw_post.to_s.bytesize, media: request.media_type }
  end

  def json
    render json: params.require(:book).permit!.to_h.merge("method" => request.request_method)
  end

  def cached
    titles = Rails.cache.fetch("titles", expires_in: 1.hour) do
      logger.info("the titles are made")
      Book.order(:id).pluck(:title)
    end
    render plain: titles.join("\n")
  end

  def count
    Rails.cache.write("count", 0, raw: true) if params[:start]
    render plain: Rails.cache.increment("count", 2).to_s
  end

  def fragment
    @books = Book.order(:id)
  end

  def member
    render plain: "a member"
  end

  def secret
    render plain: "secret"
  end

  def redirect
    redirect_to books_url(page: 2, q: "ü & b"), notice: "this way"
  end

  def back
    redirect_back fallback_location: "/"
  end

  def moved
    redirect_to "https://other.example/", status: :moved_permanently
  end

  def messages
    render plain: flash.to_h.inspect
  end

  def fields
    response.headers["X-Many"] = "a\nb"
    response.headers["X-Number"] = 7
    response.headers["Vary"] = "Accept"
    expires_in 5.minutes, public: true, stale_while_revalidate: 60
    render plain: "fields"
  end

  def hints
    request.send_early_hints("Link" => "</assets/shelf.css>; rel=preload; as=style")
    render plain: "after the hints"
  end

  def broken
    raise "the shelf has fallen down"
  end

  def teapot
    render plain: "short and stout", status: 418
  end

  def empty
    head :no_content
  end

  def nothing
    head :ok
  end

  def kinds
    respond_to do |format|
      format.html { render html: "<p>html</p>".html_safe }
      format.json { render json: { json: "ü" } }
      format.xml { render xml: { name: "xml" } }
      format.text { render plain: "text" }
    end
  end

  def inline
    render inline: "<%= 6 * 7 %> <%= csp_meta_tag %>"
  end

  def attachment
    send_data "0123456789" * 1000, filename: "ä\"b.txt", type: "text/plain"
  end

  def plain
    render plain: "0123456789abcdef" * 100_000
  end

  def conditional
    return unless stale?(etag: "seven", last_modified: Time.at(1_700_000_000).utc, public: true)

    render plain: "the seventh"
  end

  # The layout is sent before the rest is rendered.
  def streamed
    @books = Book.order(:id)
    render stream: true
  end

  # A body of Rack.
  def parts
    response.headers["Cache-Control"] = "no-store"
    response.headers["Last-Modified"] = Time.at(0).httpdate
    self.response_body = Enumerator.new { |parts| 1000.times { |n| parts << "part #{n}\n" } }
  end

  def dates
    render plain: l(Time.at(0).utc, format: :long)
  end
end
