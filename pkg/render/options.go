package render

import "time"

// Options are the options of Compile.
type Options struct {
	// Helpers are define blocks that the template can use. Their lines follow the last line of the template.
	Helpers string
	// Left and Right are the delimiters; both empty means {{ and }}.
	Left, Right string
	// Items means that the template is executed for each item of a list: `item` can be used.
	Items bool
	// Lists are the inputs that are lists, and the keys of downstreams with several objects: for these InputReads returns what
	// is read of their objects.
	Lists []string
	// Limits limit one execution; zero fields mean the default.
	Limits Limits
	// Sketch, if not nil, is called for the document of each path through the conditions that Compile probes: those that reach
	// each block of the template, up to maxProbes.
	Sketch func(*Sketch)
}

// Limits limit an execution, so that a loop over a number in a custom resource is an error and does not hang, and the memory
// that a compiled template keeps.
type Limits struct {
	// Steps is the maximum amount of work: about a microsecond each, a call of a function for example. Default 500,000.
	Steps int
	// Depth is how deep include and template may nest. Default 100.
	Depth int
	// Bytes is how much text and how many values may be made, including intermediate ones. Default 48 MiB.
	Bytes int
	// Values is the maximum number of values in one document, including maps and lists. Default 100,000.
	Values int
	// Output is the maximum size of one document in bytes, about as JSON. Default 3 MiB; the API server stores 1.5 MiB.
	Output int
	// Time is how long rendering one document may take on a busy machine. Default one second.
	Time time.Duration
	// CacheBytes limits the parsed skeletons that a template keeps between executions. Default 1 MiB.
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

// Data is what a template can read. It is never changed, and the result shares no memory with it.
type Data struct {
	// Upstream is the dot of the template.
	Upstream map[string]any
	// Params are the values of `param NAME`.
	Params map[string]any
	// Inputs are the values of `input NAME` and, by DownstreamKey, of `downstream NAME`. A nil value is an optional input that
	// is missing, a []any is a list.
	Inputs map[string]any
	// Variables returns the value of `variable NAME`; nil if there are no variables.
	Variables func(name string) (any, error)
	// Item is the value of `item`.
	Item any
	// Budget limits the execution, together with others; nil means a new one with the template's limits.
	Budget *Budget
}
