# frozen_string_literal: true

module Memo
  # From method and path to code.
  #
  #   router = Router.new([["GET", "/memo/{number}", show], ["POST", "/memo", write]])
  #   handler, numbers, allowed = router.match("GET", "/memo/17")
  class Router
    # Each number has one spelling (no leading zeros), because the path is also the page's key in
    # the store.
    NUMBER = "(0|[1-9][0-9]{0,8})"

    # Each route is [method, path, handler]. `{number}` in a path is a number.
    def initialize(routes)
      @routes = routes.map do |method, path, handler|
        words = path.split("{number}", -1).map { |word| Regexp.escape(word) }
        [method, /\A#{words.join(NUMBER)}\z/, handler]
      end
    end

    # Returns the handler and the numbers in the path.
    #
    # If there is no handler, it is nil. The third value then has the methods of this path.
    def match(method, path)
      method = "GET" if method == "HEAD"
      fitting = @routes.select { |_, pattern, _| pattern.match?(path) }
      _, pattern, handler = fitting.find { |known, _, _| known == method }
      return [handler, pattern.match(path).captures.map(&:to_i), []] if handler

      [nil, [], fitting.map(&:first)]
    end
  end
end
