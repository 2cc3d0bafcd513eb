// Package config reads operator files: it finds them, layers shared conventions under and the environment and
// --set over them, checks them strictly and hands out typed values with every behavioral default filled in. All
// errors are found in one pass, each with file, line, path, value and a way to fix it.
//
// It checks everything that can be known from the files alone. It compiles no CEL and no template, and knows no
// cluster: those that do (and that find errors in these files later) report through File.Errorf, so that every
// error reads alike.
package config
