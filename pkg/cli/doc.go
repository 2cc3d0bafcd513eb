// Package cli is the command line: it reads flags, environment and files, calls the packages that do the work, and
// turns what they return into output and an exit code. The commands are in folders, one for each family; here are their
// list, the help, schema and version.
//
// It decides nothing: check, render and run compile configs by the same compile.One, and what render prints is
// what run would apply. Commands that work offline (check without --live, render, init, generate, schema, version) are
// given no client at all.
package cli
