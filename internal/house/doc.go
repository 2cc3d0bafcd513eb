// Package house tests the sources as a whole: imports of packages, naming conventions in the code, words, and lengths
// of functions and files. It parses the sources and compiles nothing, so it is fast.
package house
