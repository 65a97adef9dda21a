# frozen_string_literal: true

# RubyGems runs this when the gem is installed, and then rake. Where the compiled part cannot be
# built, the gem is installed without it.
require_relative "build"

reason = KirinRingBuild.run
puts("#{reason}: workers get their requests over sockets") if reason
File.write(File.join(__dir__, "Rakefile"), "task :default\n")
