// Package load reads config files: it finds them, layers shared conventions under and the environment and --set over
// them, checks them strictly and returns typed values with every behavioral default filled in. All errors are found in
// one pass, each with file, line, path, value and a way to fix it.
//
// It compiles no CEL and no template, and knows no cluster: those that do (and that find errors in these files later)
// report through File.Errorf, so that every error reads alike.
package load
