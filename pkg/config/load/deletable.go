package load

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
)

// ForDeletion returns the file cut down to what the deletion of an upstream depends on, where nothing wrong was found
// in that: what is watched, whose objects are whose, what becomes of them and in which order, and deletion.before with
// all that it may read. Templates, rules and expressions of the downstreams are not among it, as long as their texts
// tell which other downstreams they read. held are the errors of the file that may concern a deletion, an unknown field
// wherever it is, since it may be one of these misspelt: then there is no such file.
//
// A file without errors can be cut down, too: what is wrong with it may be found later.
func (f *File) ForDeletion() (cut *File, held config.Errors) {
	needless := needlessForDeletion
	if f.Deletion.Before != nil {
		needless = needlessBesideBefore
	}
	ordered := f.Deletion.Wait && len(f.Downstreams) > 1
	for _, e := range f.problems {
		if !needless.MatchString(e.Path) || ordered && orders.MatchString(e.Path) || slices.Contains(f.unknown, e.Path) {
			held = append(held, e)
		}
	}
	if len(held) > 0 {
		return nil, held
	}
	return f.cut(), nil
}

// What follows matches the paths of what no deletion depends on. Where there is a deletion.before, inputs, parameters,
// variables and helpers may be for it.
const needless = `guard|events|requires|resyncPeriod|retry|validate|watch\.(matchConditions|schema|acknowledged)|status\.fields|conventions\.(pause|reconcile)|` +
	`downstreams\[\d+\]\.(template|templateFile|when|forEach|ready|drift|adoptionPolicy|adopt|updatePolicy)`

var (
	needlessBesideBefore = regexp.MustCompile(`^(` + needless + `)($|[.\[])`)
	// orders matches what may name other downstreams: if one could not be read, it is not known what is to be deleted
	// last.
	orders = regexp.MustCompile(`^((variables|helpers|helpersFile)($|[.\[])|` +
		`downstreams\[\d+\]\.(template|templateFile|when|forEach|forEach\.items)$)`)
	needlessForDeletion = regexp.MustCompile(`^(inputs|parameters|variables|helpers|helpersFile|` + needless + `)($|[.\[])`)
)

func (f *File) cut() *File {
	cut := *f
	op := &cut.Operator
	d := defaults()
	op.Validate, op.Guard, op.Rollout, op.Retry, op.ResyncPeriod = nil, nil, nil, d.Retry, d.ResyncPeriod
	op.Conventions.Pause, op.Conventions.Reconcile = nil, nil
	if f.hasProblemIn("watch.matchConditions") {
		op.Watch.MatchConditions = nil
	}
	op.Downstreams = slices.Clone(op.Downstreams)
	order := f.deletionOrder()
	for i, have := range op.Downstreams {
		op.Downstreams[i] = config.Downstream{Name: have.Name, APIVersion: have.APIVersion, Kind: have.Kind, When: "true",
			Ownership: have.Ownership, TargetNamespaces: have.TargetNamespaces, DeletionPolicy: have.DeletionPolicy,
			After: order[i]}
	}
	// nothing is made: of the conventions' texts, the keys and the constant labels are enough
	if op.Deletion.Before == nil {
		op.Inputs, op.Variables, op.Helpers = nil, nil, ""
		if f.hasProblemIn("parameters") {
			op.Parameters = nil
		}
		op.Conventions.Labels, op.Conventions.Annotations = maps.Clone(op.Conventions.Labels),
			maps.Clone(op.Conventions.Annotations)
		for key, text := range op.Conventions.Labels {
			if left, right := op.Delimiters[0], op.Delimiters[1]; strings.Contains(text, left) {
				op.Conventions.Labels[key] = left + " .metadata.name " + right
			}
		}
		for key := range op.Conventions.Annotations {
			op.Conventions.Annotations[key] = ""
		}
	}
	return &cut
}

// hasProblemIn reports whether there are errors below a key.
func (f *File) hasProblemIn(key string) bool {
	return slices.ContainsFunc(f.problems, func(e *config.Error) bool {
		rest, ok := strings.CutPrefix(e.Path, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// MayHold reports whether upstreams may have a finalizer of this config: it names one, or it may, as far as it could be
// read.
func (f *File) MayHold() bool {
	if f.Source != nil { // rows have no finalizers
		return false
	}
	return len(f.Conventions.Finalizers()) > 0 || slices.ContainsFunc(f.problems, func(e *config.Error) bool {
		return e.Path == "" || strings.HasPrefix(e.Path, "conventions") || slices.Contains(f.unknown, e.Path)
	})
}
