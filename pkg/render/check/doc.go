// Package check finds what is wrong with a template before there is an upstream. Walk follows what the template reads,
// by the schemas of that: which fields nothing can have, and what each hole can hold. Documents holds the documents
// that the template prints, with the holes in them, to the schema of their kind. It finds nothing where no schema is
// known.
package check

// Finding is what is wrong with a template.
type Finding struct {
	// Line is in the template, or behind its last line in the helpers.
	Line         int
	Problem, Fix string
	// Unsure says that some upstream may make it right.
	Unsure bool
	// Other is another line that has a part in it; 0 if there is none.
	Other int
}
