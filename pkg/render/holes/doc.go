// Package holes finds where the holes of a template are in its document, and what is written around them. Without an
// upstream, it prints skeletons, each on another path through the template's conditions. So it finds YAML that is
// invalid on every path, too.
package holes
