// Package render compiles templates. They are text/template with the sprig functions, but the output of a hole never
// passes through a YAML parser:
//
//  1. Compile rewrites every action that prints, so that it records its value and prints a placeholder instead;
//  2. executing the template gives a skeleton: the template's own YAML with placeholders. Only this text is parsed;
//  3. the parsed tree is filled. A placeholder that is a whole plain scalar becomes the value with its type; inside
//     quotes or other text it becomes text.
//
// So a string in an upstream stays that string, whatever it contains, and structure enters a document only where a hole
// is a whole value (Template.Holes lists these places). Each path through the conditions and loops of a template gives
// one skeleton, so parsed trees are kept in a cache bounded by bytes. pkg/render/program does 2 and 3.
//
// The package sends no requests, and requires only that a document is one mapping: its callers check names, namespaces
// and metadata.
package render
