package render

// Options are what compiling needs besides the text.
type Options struct {
	// Name is the template's name for text/template; it appears in no error. Empty is fine.
	Name string
	// Left and Right are the delimiters; both empty means {{ and }}.
	Left, Right string
	// Limits bound what one execution may use; zero fields take the default.
	Limits Limits
}

// Limits bound an execution, so that a loop over a number that somebody wrote into a custom resource is an error
// rather than a hang, and the memory that a compiled template keeps.
type Limits struct {
	// Steps is how many loop bodies and template calls one execution may begin. Default 100,000.
	Steps int
	// Depth is how deep include and template may nest. Default 100.
	Depth int
	// Bytes is how much text and how many copied values one execution may make. Default 16 MiB.
	Bytes int
	// CacheBytes bounds the parsed skeletons that a template keeps between executions. Default 1 MiB.
	CacheBytes int
}

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.Steps, 100_000)
	set(&l.Depth, 100)
	set(&l.Bytes, 16<<20)
	set(&l.CacheBytes, 1<<20)
	return l
}

// Data is what a template can read. It is never changed, and nothing of it is shared with the result.
type Data struct {
	// Upstream is the dot of the template.
	Upstream map[string]any
	// Params is what `param NAME` gives.
	Params map[string]any
	// Inputs is what `input NAME` gives; a nil value is an input that is allowed to be missing.
	Inputs map[string]any
}
