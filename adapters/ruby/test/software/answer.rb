# frozen_string_literal: true

# A response as the client has read it. Names of fields are as they came. `hints` are the fields of
# the 103 responses before it.
Answer = Struct.new(:status, :fields, :body, :hints) do
  # Returns the value of a field, or nil.
  def field(name)
    all(name).first
  end

  def all(name)
    fields.filter_map { |key, value| value if key.casecmp?(name) }
  end

  # Returns the first group of a pattern in the body. Forms have such tokens.
  def find(pattern)
    text[pattern, 1] or raise("#{pattern.inspect} is not in\n#{self}")
  end

  def text
    body.dup.force_encoding(Encoding::UTF_8).scrub
  end

  def to_s
    head = fields.map { |name, value| "#{name}: #{value}\n" }.join
    shown = body.include?("\0") ? "#{body.bytesize} bytes" : text[0, 1000]
    "#{status}\n#{head}\n#{shown}"
  end
end
