package render

import "time"

// Options are what compiling needs besides the text.
type Options struct {
	// Helpers are define blocks that the template can use. Their lines are counted from the template's last one on.
	Helpers string
	// Left and Right are the delimiters; both empty means {{ and }}.
	Left, Right string
	// Items tells that the template is executed for each item of a list: `item` can be used.
	Items bool
	// Lists are the inputs that are lists, and the keys of downstreams with several objects: of these InputReads tells what is read of
	// their objects.
	Lists []string
	// Limits bound what one execution may use; zero fields take the default.
	Limits Limits
	// Sketch, if set, is called for the document of each path through the conditions that compiling tries: those that
	// reach each block of the template, as far as maxProbes goes.
	Sketch func(*Sketch)
}

// Limits bound an execution, so that a loop over a number that somebody wrote into a custom resource is an error
// rather than a hang, and the memory that a compiled template keeps.
type Limits struct {
	// Steps is how much work is allowed: about a microsecond each, a call of a function for example. Default 500,000.
	Steps int
	// Depth is how deep include and template may nest. Default 100.
	Depth int
	// Bytes is how much text and how many values may be made, those between included. Default 48 MiB.
	Bytes int
	// Values is how many values one document may have, maps and lists included. Default 100,000.
	Values int
	// Output is how many bytes one document may have, about as JSON. Default 3 MiB; the API server stores 1.5 MiB.
	Output int
	// Time is how long rendering one document may take, on a machine that has other things to do. Default one second.
	Time time.Duration
	// CacheBytes bounds the parsed skeletons that a template keeps between executions. Default 1 MiB.
	CacheBytes int
}

func (o Options) withDefaults() Options {
	if o.Left == "" {
		o.Left = "{{"
	}
	if o.Right == "" {
		o.Right = "}}"
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.Steps, 500_000)
	set(&l.Depth, 100)
	set(&l.Bytes, 48<<20)
	set(&l.Values, 100_000)
	set(&l.Output, 3<<20)
	if l.Time <= 0 {
		l.Time = time.Second
	}
	set(&l.CacheBytes, 1<<20)
	return l
}

// Data is what a template can read. It is never changed, and nothing of it is shared with the result.
type Data struct {
	// Upstream is the dot of the template.
	Upstream map[string]any
	// Params is what `param NAME` gives.
	Params map[string]any
	// Inputs is what `input NAME` gives and, by DownstreamKey, `downstream NAME`; a nil value is an input that is allowed to be missing, a []any one that is a list.
	Inputs map[string]any
	// Variables gives what `variable NAME` gives; nil: there are none.
	Variables func(name string) (any, error)
	// Item is what `item` gives.
	Item any
	// Budget is what the execution draws on, together with others; nil: one of its own, of the template's limits.
	Budget *Budget
}
