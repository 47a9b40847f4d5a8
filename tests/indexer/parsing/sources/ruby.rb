require 'json'
require_relative "lib/x"

# A module. More.
module Outer
  VERSION = "1"

  class Foo::Bar < Base::Thing
    include Comparable
    # runs
    def run(a) = helper.go(a)

    def self.make(x)
      new(x)
      obj&.call!
    end

    class << self
      def meta; end
    end
  end
end

def top?; Outer::Foo.make; end
