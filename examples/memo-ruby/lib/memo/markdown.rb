# frozen_string_literal: true

require_relative "cmark"
require_relative "html"

module Memo
  # A stranger's Markdown as HTML that is safe to show.
  #
  # libcmark is a parser of the written CommonMark grammar. So the code can decide on the tree what
  # is safe, before there is any HTML. libcmark is also linear, and in C: it takes 12 ms for 48 KB
  # of "*a_ ", on which parsers made of substitutions work for minutes.
  module Markdown
    TITLE_LONGEST = 80
    EXCERPT_LONGEST = 140

    SAFE_URL = %r{\A(?:https?://|mailto:|/|#|\?)}i.freeze
    # Ruby's \s and `strip` know only the spaces of ASCII.
    SPACES = /[[:space:]]+/.freeze
    EDGES = /\A[[:space:]]+|[[:space:]]+\z/.freeze

    class << self
      # Returns a memo as safe HTML, without the title that the page shows above it.
      def html(markdown)
        Cmark.document(markdown) do |document|
          first = document.first_child
          first.remove if first && just_the_title?(first)
          make_safe(document)
          # The renderer writes every tag itself and escapes all text. So this replaces only in its
          # own links.
          Html.new(document.html.gsub("<a href=", '<a rel="nofollow noopener ugc" href='))
        end
      end

      # Returns the values for lists: the first line as plain text, and the start of the rest.
      def title_and_excerpt(markdown)
        Cmark.document(markdown) do |document|
          block = document.first_child
          title, _, rest = (block ? text_of(block) : "").sub(/\A[[:space:]]+/, "").partition("\n")
          while rest.length < EXCERPT_LONGEST * 2 && block && (block = block.next)
            rest += " #{text_of(block)}"
          end
          title = shortened(title, TITLE_LONGEST)
          [title.empty? ? "Untitled" : title, shortened(rest, EXCERPT_LONGEST)]
        end
      end

      private

      def just_the_title?(block)
        return false unless %w[heading paragraph].include?(block.type)

        text = text_of(block).gsub(EDGES, "")
        text.length.between?(1, TITLE_LONGEST) && !text.include?("\n") && !link_in?(block)
      end

      def link_in?(block)
        block.nodes.any? { |node| %w[link image].include?(node.type) }
      end

      def text_of(block)
        block.nodes.map { |node| own_text(node) }.join
      end

      def own_text(node)
        case node.type
        when "softbreak", "linebreak" then "\n"
        when "item" then " · "
        when "paragraph" then " "
        else node.literal
        end
      end

      def shortened(text, longest)
        text = text.gsub(SPACES, " ").gsub(/\A[ ·]+| \z/, "").gsub(/(?<=[.:!?]) · /, " ")
        return text if text.length <= longest

        "#{text[0, longest - 1].sub(/[[:space:]]+[^[:space:]]{0,15}\z/, '')}…"
      end

      # Makes the tree safe.
      #
      # Raw HTML becomes text that shows it. A link to anything but the web, mail or this site
      # becomes its words. A picture becomes a link to it; otherwise a memo could make every
      # reader's browser send requests to any server. Headings go one level down, below the page's
      # own.
      def make_safe(document)
        document.nodes.each do |node|
          case node.type
          when "html_block" then node.replace_by(Cmark.new_paragraph(node.literal))
          when "html_inline" then node.replace_by(Cmark.new_text(node.literal))
          when "link", "image" then make_link_safe(node)
          when "heading" then node.heading_level = [node.heading_level + 1, 6].min
          end
        end
      end

      def make_link_safe(node)
        url = node.url
        is_web = SAFE_URL.match?(url)
        return if node.type == "link" && is_web

        # Links do not nest. A picture in a link becomes only its words.
        link = Cmark.new_link(url) if is_web && !in_link?(node)
        if link
          node.insert_before(link)
          link.append(Cmark.new_text(url)) unless node.first_child
        end
        while (child = node.first_child)
          link ? link.append(child) : node.insert_before(child)
        end
        node.remove
      end

      def in_link?(node)
        while (node = node.parent)
          return true if node.type == "link"
        end
        false
      end
    end
  end
end
