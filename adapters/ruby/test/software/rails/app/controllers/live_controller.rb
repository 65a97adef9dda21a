# frozen_string_literal: true

# Responses that an action writes while it runs.
class LiveController < ApplicationController
  include ActionController::Live

  def lines
    response.headers["Content-Type"] = "text/plain"
    response.headers["Last-Modified"] = Time.at(0).httpdate
    500.times { |number| response.stream.write("line #{number}\n") }
  ensure
    response.stream.close
    logger.info("the lines are closed")
  end

  def events
    response.headers["Content-Type"] = "text/event-stream"
    response.headers["Last-Modified"] = Time.at(0).httpdate
    events = SSE.new(response.stream, retry: 300, event: "book")
    Book.order(:id).limit(1).each { |book| events.write({ title: book.title }, id: book.id) }
    events.write("the end", event: "end")
  ensure
    events&.close
  end

  def broken
    response.headers["Content-Type"] = "text/plain"
    raise "before the first byte" if params[:early]

    response.stream.write("begin\n")
    raise "in the middle"
  ensure
    response.stream.close unless params[:early]
  end
end
