// Package house holds the tests of what the code looks like as a whole: which
// package may import which, that no naming convention is compiled in, and how
// long functions and files may get. It reads the sources and compiles nothing,
// so it is fast; it says nothing about what the code does.
package house
