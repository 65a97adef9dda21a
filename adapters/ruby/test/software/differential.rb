# frozen_string_literal: true

# One visit of two servers that serve the same application: they must answer the same.
#
#   visit = Differential.new(self, kirin, puma, random: [/name="authenticity_token" value="(.*?)"/])
#   visit.step("the form", "GET", "/books/new", 200, body: /<form/)
#
# Every step also has its expected status, and most have a pattern of the body, because two servers
# that fail alike would prove nothing.

require "digest"
require_relative "differences"
require_relative "visitor"

class Differential
  attr_reader :visitors

  # `random` are patterns of what is random or a time in bodies and fields. `ignored` are fields
  # that are compared in no step.
  def initialize(test, kirin, puma, random: [], ignored: [])
    @test = test
    @servers = [kirin, puma]
    @random = random
    @ignored = ignored
    @visitors = @servers.map { |server| Visitor.new(server.port) }
  end

  # Sends the same request to both, and compares the responses. Returns Kirin's.
  #
  # `content` is a body, or a callable that makes one for a visitor. `body` is a pattern that the
  # body must have, and `field` a pair of a name and a value. `ignored` are fields that are not
  # compared. `puma` is the status of a request that Puma answers in another way, so that nothing is
  # compared.
  def step(what, method, target, status, content: nil, fields: {}, body: nil, field: nil,
           ignored: [], puma: nil)
    answers = @visitors.map do |visitor|
      place = target.respond_to?(:call) ? target.call(visitor) : target
      made = content.respond_to?(:call) ? content.call(visitor) : content
      visitor.request(method, place, made, fields)
    end
    check_expected(what, answers.first, status, body, field)
    if puma
      @test.assert_equal(puma, answers.last.status, explain(what, answers))
    else
      compare(what, answers, ignored)
    end
    answers.first
  end

  # Asserts that both visitors have needed one connection.
  def assert_connections_kept
    @visitors.zip(@servers) do |visitor, server|
      @test.assert_equal(1, visitor.connections, "#{server.name} has closed a connection")
    end
  end

  def close
    @visitors.each(&:close)
  end

  private

  def check_expected(what, answer, status, body, field)
    said = -> { "#{what}: #{answer}\n#{@servers.first.log[-3000..] || @servers.first.log}" }
    @test.assert_equal(status, answer.status, said)
    @test.assert_match(body, answer.text, said) if body
    @test.assert_equal(field.last, answer.field(field.first), said) if field
  end

  def compare(what, answers, ignored)
    said = -> { explain(what, answers) }
    @test.assert_equal(answers.last.status, answers.first.status, said)
    hints = answers.map { |answer| answer.hints.map { |name, value| [name.downcase, value] } }
    @test.assert_equal(hints.last, hints.first, said)
    ours, theirs = answers.map { |answer| without_random(answer.body) }
    @test.assert(ours == theirs, -> { "#{difference(ours, theirs)}\n#{said.call}" })
    is_random = ours != answers.first.body
    ours, theirs = answers.map { |answer| fields_of(answer, ignored, is_random) }
    Differences::ADDED_BY_KIRIN.each_key { |name| ours.delete(name) unless theirs.key?(name) }
    @test.assert_equal(theirs, ours, said)
  end

  # What is random can have another length, and another tag.
  def fields_of(answer, ignored, is_random)
    ignored += @ignored
    ignored += %w[content-length etag] if is_random
    Differences.comparable_fields(answer, ignored).transform_values do |values|
      values.map { |value| without_random(value.b) }
    end
  end

  def without_random(bytes)
    @random.reduce(bytes.b) { |text, pattern| text.gsub(pattern, "RANDOM") }
  end

  def difference(ours, theirs)
    if (ours + theirs).include?("\0")
      return [ours, theirs].map { |body| "#{body.bytesize} bytes, #{Digest::SHA1.hexdigest(body)}" }
    end

    lines = [ours, theirs].map { |body| body.force_encoding("UTF-8").scrub.lines }
    pairs = lines.first.zip(lines.last).reject { |our, their| our == their }.first(10)
    "the bodies differ:\n#{pairs.map { |our, their| "kirin: #{our}puma: #{their}" }.join("\n")}"
  end

  def explain(what, answers)
    answers.zip(@servers).map { |answer, server| "#{what}: #{server.name}: #{answer}" }.join("\n")
  end
end
