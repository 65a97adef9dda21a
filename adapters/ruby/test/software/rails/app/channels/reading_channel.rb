# frozen_string_literal: true

# Readers of a book, who hear each other.
class ReadingChannel < ActionCable::Channel::Base
  def subscribed
    return reject if params["book"].to_i.zero?

    stream_from "book-#{params['book']}"
    transmit({ title: Book.find(params["book"]).title, reader: connection.reader })
  end

  def say(data)
    ActionCable.server.broadcast("book-#{params['book']}", { said: data["text"] })
  end

  def fail(_data)
    raise "no such word"
  end

  def unsubscribed
    logger.info("a reader has left")
  end
end
