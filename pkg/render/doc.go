// Package render turns a template and an upstream into one document.
//
// Templates are text/template with the sprig functions, but what a hole prints never passes through a YAML parser:
//
//  1. when a template is compiled, every action that prints is rewritten so that it records its value and prints an
//     inert placeholder instead;
//  2. executing it gives a skeleton: the author's own YAML with placeholders. Only the author's text is ever parsed;
//  3. the parsed tree is filled. A placeholder that is a whole plain scalar becomes the value with its type, inside
//     quotes or other text it becomes text.
//
// So a string in an upstream stays that string, whatever it holds, and structure enters a document only where a hole
// stands alone (Holes lists those places). Skeletons repeat, one for each path through the author's conditions and
// loops, so parsed trees are kept in a cache bounded by bytes.
//
// The package knows nothing of Kubernetes clients, nor of what a document must look like beyond being one mapping:
// names, namespaces and metadata are checked by its callers.
package render
