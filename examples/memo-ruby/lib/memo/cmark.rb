# frozen_string_literal: true

require "fiddle/import"

module Memo
  # CommonMark: the parts of libcmark that the site uses.
  #
  # Debian's package for Ruby (ruby-commonmarker) has a variant of this library with a parser of its
  # own. This module calls the library itself, so the HTML is that of the applications in Perl and
  # Python. The package libcommonmark-perl, for example, brings it.
  module Cmark
    EVENT_DONE = 1
    EVENT_ENTER = 2

    DEFAULT_OPTIONS = 0

    # As cmark_node_type has it. The types of found nodes come by name (`Node#type`).
    PARAGRAPH = 8
    TEXT = 11
    LINK = 19

    # The functions of the library.
    module Library
      extend Fiddle::Importer

      # The line of the library in the list that the system's loader uses.
      LISTED = /libcmark\.so\.\S+ .* => (\S+)/.freeze

      dlload `/sbin/ldconfig -p`[LISTED, 1] ||
             raise(LoadError, "libcmark is missing: apt-get install libcmark-dev")
      extern "void *cmark_parse_document(const char *, size_t, int)"
      extern "void *cmark_render_html(void *, int)"
      extern "void *cmark_iter_new(void *)"
      extern "int cmark_iter_next(void *)"
      extern "void *cmark_iter_get_node(void *)"
      extern "void cmark_iter_free(void *)"
      extern "void *cmark_node_new(int)"
      extern "void cmark_node_free(void *)"
      extern "void *cmark_node_get_type_string(void *)"
      extern "void *cmark_node_first_child(void *)"
      extern "void *cmark_node_next(void *)"
      extern "void *cmark_node_parent(void *)"
      extern "void *cmark_node_get_literal(void *)"
      extern "int cmark_node_set_literal(void *, const char *)"
      extern "void *cmark_node_get_url(void *)"
      extern "int cmark_node_set_url(void *, const char *)"
      extern "int cmark_node_get_heading_level(void *)"
      extern "int cmark_node_set_heading_level(void *, int)"
      extern "int cmark_node_append_child(void *, void *)"
      extern "int cmark_node_insert_before(void *, void *)"
    end

    class << self
      # Calls the block with the tree of a text. Its nodes exist until the end of the block. Returns
      # what the block returns.
      def document(markdown)
        root = Node.new(
          Library.cmark_parse_document(markdown, markdown.bytesize, DEFAULT_OPTIONS)
        )
        yield root
      ensure
        root&.remove
      end

      # Creates a text. It belongs to no tree yet.
      def new_text(literal)
        text = Node.new(Library.cmark_node_new(TEXT))
        Library.cmark_node_set_literal(text.pointer, literal)
        text
      end

      # Creates a paragraph of one text. It belongs to no tree yet.
      def new_paragraph(literal)
        paragraph = Node.new(Library.cmark_node_new(PARAGRAPH))
        paragraph.append(new_text(literal))
        paragraph
      end

      # Creates a link without words. It belongs to no tree yet.
      def new_link(url)
        link = Node.new(Library.cmark_node_new(LINK))
        Library.cmark_node_set_url(link.pointer, url)
        link
      end

      # Returns the text at a pointer, or the empty string.
      def text_at(pointer)
        pointer.null? ? "" : pointer.to_s.force_encoding(Encoding::UTF_8)
      end
    end

    # A node of a tree.
    class Node
      attr_reader :pointer

      def initialize(pointer)
        @pointer = pointer
      end

      # Returns the name of the type: "heading", "html_block", "link" …
      def type
        Cmark.text_at(Library.cmark_node_get_type_string(@pointer))
      end

      # Returns the text of a node that has text itself, otherwise the empty string.
      def literal
        Cmark.text_at(Library.cmark_node_get_literal(@pointer))
      end

      # Returns the URL of a link or an image.
      def url
        Cmark.text_at(Library.cmark_node_get_url(@pointer))
      end

      # Returns the level of a heading, 1 to 6.
      def heading_level
        Library.cmark_node_get_heading_level(@pointer)
      end

      def heading_level=(level)
        Library.cmark_node_set_heading_level(@pointer, level)
      end

      # Returns the first child, or nil.
      def first_child
        node_at(Library.cmark_node_first_child(@pointer))
      end

      # Returns the next node with the same parent, or nil.
      def next
        node_at(Library.cmark_node_next(@pointer))
      end

      # Returns the parent, or nil.
      def parent
        node_at(Library.cmark_node_parent(@pointer))
      end

      # Returns this node and all below it, in the order of the text.
      #
      # The list is complete before it is returned, so that the tree may then be changed.
      def nodes
        found = []
        iterator = Library.cmark_iter_new(@pointer)
        while (event = Library.cmark_iter_next(iterator)) != EVENT_DONE
          found << Node.new(Library.cmark_iter_get_node(iterator)) if event == EVENT_ENTER
        end
        Library.cmark_iter_free(iterator)
        found
      end

      # Moves a node to the end of this one's children.
      def append(child)
        check(Library.cmark_node_append_child(@pointer, child.pointer))
      end

      # Moves a node to the place before this one.
      def insert_before(sibling)
        check(Library.cmark_node_insert_before(@pointer, sibling.pointer))
      end

      # Puts a node in the place of this one, which is removed.
      def replace_by(other)
        insert_before(other)
        remove
      end

      # Removes the node, with all below it. It may not be used any more.
      def remove
        Library.cmark_node_free(@pointer)
      end

      # Returns the HTML of the tree.
      def html
        pointer = Library.cmark_render_html(@pointer, DEFAULT_OPTIONS)
        Cmark.text_at(pointer)
      ensure
        Fiddle.free(pointer.to_i) if pointer
      end

      private

      def node_at(pointer)
        pointer.null? ? nil : Node.new(pointer)
      end

      def check(done)
        raise ArgumentError, "CommonMark allows no such node at this place" if done.zero?
      end
    end
  end
end
