# frozen_string_literal: true

# Runs all tests: ruby -Ilib -Itest test/run.rb
Dir[File.join(__dir__, "**/*_test.rb")].sort.each { |path| require path }
