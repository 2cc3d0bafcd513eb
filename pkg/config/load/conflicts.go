package load

import (
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
)

// Conflicts reports what operators cannot share. Each error is in the later file and names the earlier. Operators has
// asked this of the files that it returns; ask it of files that were loaded at different times.
func Conflicts(files []*File) config.Errors {
	var errs config.Errors
	unique := func(path, what string, value func(*File) string) {
		first := map[string]*File{}
		for _, f := range files {
			v := value(f)
			other, taken := first[v]
			switch {
			case v == "":
			case taken:
				errs = append(errs, f.taken(path, what, v, other))
			default:
				first[v] = f
			}
		}
	}
	unique("metadata.name", "name", func(f *File) string { return f.Metadata.Name })
	unique("conventions.fieldManager", "field manager", func(f *File) string { return f.Conventions.FieldManager })
	unique("conventions.finalizer", "finalizer", func(f *File) string { return f.Conventions.Finalizer })
	unique("guard.confirm", "key of a ConfigMap", func(f *File) string {
		if f.Guard == nil {
			return ""
		}
		return decidedAt(f.Guard.Confirm)
	})
	unique("rollout.control", "key of a ConfigMap", func(f *File) string {
		if f.Rollout == nil {
			return ""
		}
		return decidedAt(f.Rollout.Control)
	})
	for _, f := range files {
		errs = append(errs, stillUsed(f, files)...)
	}
	for i, f := range files {
		told := map[string]bool{} // one clash of a path is enough to fix it, however many copies of a file there are
		for _, other := range files[:i] {
			for _, e := range slices.Concat(sharedStatus(f, other), sharedMarks(f, other), describedBy(f, other)) {
				if !told[e.Path] {
					errs = append(errs, e)
				}
				told[e.Path] = true
			}
		}
	}
	return append(errs, cycles(files)...)
}

// stillUsed reports what this operator says it used before and another one uses now: both would take it for their own.
func stillUsed(f *File, files []*File) config.Errors {
	var errs config.Errors
	p := f.Conventions.Previous
	if p == nil {
		return nil
	}
	for _, other := range files {
		c := other.Conventions
		if other == f {
			continue
		}
		if p.FieldManager != "" && p.FieldManager == c.FieldManager {
			errs = append(
				errs,
				f.Errorf("conventions.previous.fieldManager", "remove it, or rename the other",
					"the field manager %q is used in %s",
					p.FieldManager, other.where("conventions.fieldManager")),
			)
		}
		if p.Finalizer != "" && p.Finalizer == c.Finalizer {
			errs = append(
				errs,
				f.Errorf("conventions.previous.finalizer", "remove it, or rename the other", "the finalizer %q is used in %s",
					p.Finalizer, other.where("conventions.finalizer")),
			)
		}
	}
	return errs
}

// taken reports a value that must be unique and is another operator's. Where the conventionsFile gives it, it is the
// operator's own file that lacks one.
func (f *File) taken(path, what, value string, other *File) *config.Error {
	pos := f.Index.Find(path)
	if pos.In == nil {
		return f.Errorf(path, "choose another", "the %s %q is used in %s too", what, value, other.where(path))
	}
	return f.Errorf(conventionsFileKey, "add "+path+" to this file", "the %s %q, which %s:%d gives, is used in %s too",
		what, value, pos.In.Path, pos.Line, other.where(path))
}

// where names the place of a value for another file's error: one in the operator's own file, so that two that share
// a conventionsFile can be distinguished.
func (f *File) where(path string) string {
	if f.Index.Find(path).In != nil {
		path = conventionsFileKey
	}
	e := f.Errorf(path, "", "")
	e.Path = ""
	return e.Error()
}

// sharedStatus reports the condition types and status paths that two operators on one upstream kind both write: each
// would undo the other forever. Where no object can be an upstream of both, they share none; but if only labels keep
// them apart, an object may go from one to the other, which would take what is recorded for its own.
func sharedStatus(f *File, other *File) config.Errors {
	kind := config.GroupKind(f.Watch.APIVersion, f.Watch.Kind)
	if f.Watch.Kind == "" || f.Source != nil || kind != config.GroupKind(other.Watch.APIVersion,
		other.Watch.Kind) || !*f.Status.Enabled ||
		!*other.Status.Enabled ||
		apart(&f.Watch, &other.Watch) {
		return nil
	}
	if disjoint(&f.Watch, &other.Watch) {
		return sharedRecord(f, other)
	}
	var errs config.Errors
	both := fmt.Sprintf("both operators watch %s", f.Watch.Kind)
	for _, c := range f.Status.Conditions.All() {
		theirs := other.Status.Conditions.All()
		i := slices.IndexFunc(theirs, func(o config.Named) bool { return o.ConditionType == c.ConditionType })
		if c.ConditionType != "" && i >= 0 {
			errs = append(errs, f.Errorf("status.conditions."+c.Key, "choose another type, or watch other namespaces or labels",
				"the condition %q is written by %s too, and %s",
				c.ConditionType, other.where("status.conditions."+theirs[i].Key), both))
		}
	}
	for _, p := range f.Status.Paths() {
		for _, o := range other.Status.Paths() {
			if p.Path.Overlaps(o.Path) {
				errs = append(errs, f.Errorf(p.At, "choose another path, or watch other namespaces or labels",
					"%s overlaps %s, which is written by %s, and %s",
					p.Path, o.Path, other.where(o.At), both))
			}
		}
	}
	return errs
}

// sharedRecord reports one status.downstreams of two operators whose upstreams only labels distinguish.
func sharedRecord(f, other *File) config.Errors {
	const at = "status.downstreams"
	for _, p := range f.Status.Paths() {
		for _, o := range other.Status.Paths() {
			if p.At == at && o.At == at && p.Path.Overlaps(o.Path) {
				return config.Errors{f.Errorf(at, "choose another path, or watch other namespaces",
					"%s overlaps %s, which is written by %s, and a label that changes moves a %s from one operator to the other, "+
						"which would take "+
						"what is recorded for its own", p.Path, o.Path, other.where(at), f.Watch.Kind)}
			}
		}
	}
	return nil
}

// sharedMarks reports annotations that two operators would both write on one object, of which one sets only fields.
func sharedMarks(f *File, other *File) config.Errors {
	var errs config.Errors
	for i, d := range f.Downstreams {
		for _, o := range other.Downstreams {
			if !d.OwnsFields() && !o.OwnsFields() || !d.SharesKind(&o) {
				continue
			}
			a, b := &f.Conventions, &other.Conventions
			for path, keys := range map[string][2]string{
				"conventions.owner.annotation": {a.Owner.Annotation, b.Owner.Annotation},
				"conventions.hash.annotation":  {a.Hash.Annotation, b.Hash.Annotation},
				"conventions.hash.label":       {a.Hash.Label, b.Hash.Label},
			} {
				if keys[0] != "" && keys[0] == keys[1] {
					errs = append(errs, f.Errorf(
						path,
						"choose another key",
						"%s is used in %s too, and both operators may write one %s (downstreams[%d]): with ownership: Fields, several "+
							"operators "+
							"contribute to an object",
						keys[0],
						other.where(path),
						d.Kind,
						i,
					))
				}
			}
		}
	}
	return errs
}

func downstreamKind(i int) string { return fmt.Sprintf("downstreams[%d].kind", i) }

// decidedAt names the key of a ConfigMap in which a person decides; "" if there is none.
func decidedAt(c *common.Confirm) string {
	if c == nil || *c == (common.Confirm{}) {
		return ""
	}
	return c.Namespace + "/" + c.ConfigMap + "/" + c.Key
}
