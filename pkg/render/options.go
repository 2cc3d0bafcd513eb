package render

import (
	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

// Options are the options of Compile.
type Options struct {
	// Helpers are define blocks that the template can use. Their lines follow the last line of the template.
	Helpers string
	// Delimiters are {{ and }} where they are empty.
	parsing.Delimiters
	// Items means that the template is executed for each item of a list: `item` can be used.
	Items bool
	// Lists are the inputs that are lists, and the keys of downstreams with several objects: for these InputReads returns
	// what is read of their objects.
	Lists []string
	// Probed, if not nil, is called for the document of each path through the conditions that Compile probes.
	Probed func(*holes.Document)
}
