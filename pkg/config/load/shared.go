package load

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/decode"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// shared is a file of conventions as operators find it. Its values are laid under theirs, and keep their places.
type shared struct {
	*document.Document                // nil where the file cannot be read
	unreadable         error          // for the operators that name the file to tell
	conventions        map[string]any // nil where nothing can be made of the file
	errs               config.Errors
}

// library holds the files of conventions that one call of Operators has read, by path: each is read once, so that the
// operators that share it see the same text.
type library map[string]*shared

// open returns the file of conventions at path.
func (l library) open(path string) *shared {
	if s, ok := l[path]; ok {
		return s
	}
	s := &shared{}
	l[path] = s
	data, err := readFile(path)
	if err != nil {
		s.unreadable = err
		return s
	}
	s.Document = document.ParseDocument(path, data)
	s.check()
	return s
}

// check decodes the file by itself, so that what an operator's own conventions hide is checked too.
func (s *shared) check() {
	f := &File{Document: s.Document}
	if s.Values == nil {
		s.errs = s.Document.Errs
		return
	}
	if err := f.identify(config.ConventionsKind); err != nil {
		s.errs = slices.Concat(s.Document.Errs, config.Errors{err})
		return
	}
	var all config.SharedConventions
	s.errs, _ = decode.Decode(s.Document, &all)
	m, isMap := s.Values[conventionsKey].(map[string]any)
	if !isMap && !f.Reported(conventionsKey) {
		s.errs = append(s.errs, f.Errorf(conventionsKey, "write the names that operators share below it",
			"required value is missing"))
	}
	s.conventions = m
}

const (
	conventionsKey     = "conventions"
	conventionsFileKey = "conventionsFile"
)

// sharedName returns the name that the file or an override gives in conventionsFile.
func (f *File) sharedName() string {
	v := f.Values[conventionsFileKey]
	for _, o := range f.overrides {
		if document.Display(o.path) == conventionsFileKey {
			v = o.value
		}
	}
	name, _ := v.(string)
	return name
}

// conventionsUnread reports whether conventions may be in another file that could not be read: then a missing key is
// not an error.
func (f *File) conventionsUnread() bool {
	return f.shared != nil && f.shared.conventions == nil || f.Reported(conventionsFileKey)
}

// sharedErrors says what is wrong with the file of conventions that the operator names.
func (f *File) sharedErrors() config.Errors {
	switch {
	case f.shared == nil:
		return nil
	case f.shared.unreadable != nil:
		return config.Errors{f.Errorf(conventionsFileKey, "name a file relative to the config file", "%s cannot be read: %s",
			f.Place(f.sharedName()), reason(f.shared.unreadable))}
	default:
		return f.shared.errs
	}
}

// under lays conventions, those of s, under those of values, key by key. It notes in x where the values that it
// brings stand.
func (s *shared) under(values, conventions map[string]any, x document.Index) {
	own, isMap := values[conventionsKey].(map[string]any)
	switch {
	case values[conventionsKey] == nil:
		own = map[string]any{}
		values[conventionsKey] = own
		if _, ok := x[conventionsKey]; !ok {
			x[conventionsKey] = x.Find(conventionsFileKey) // what is missing in both files belongs in the operator's
		}
	case !isMap:
		return // reported as what it is
	}
	s.fill(own, conventions, fieldpath.New(conventionsKey), x)
}

// fill gives dest what it lacks of src. A null is as good as absent, but as the value of a label or annotation, where
// it is reported.
func (s *shared) fill(dest, src map[string]any, at fieldpath.Path, x document.Index) {
	chosen := alternatives(at, dest)
	for _, key := range document.SortedKeys(src) {
		own, given := dest[key]
		given = given && (own != nil || isEntry(at))
		theirs := src[key]
		ownMap, ownIsMap := own.(map[string]any)
		srcMap, srcIsMap := theirs.(map[string]any)
		switch {
		case ownIsMap && srcIsMap:
			s.fill(ownMap, srcMap, at.Child(key), x)
		case given || slices.Contains(chosen, key):
		default:
			dest[key] = theirs
			root := document.Display(at.Child(key))
			for path, pos := range s.Index {
				if document.Below(path, root) {
					pos.In = s.Document
					x[path] = pos
				}
			}
		}
	}
}

// isEntry reports whether the keys of the map at a path are the config's, not fields.
func isEntry(at fieldpath.Path) bool {
	return slices.Contains([]string{"labels", "annotations"}, at[len(at)-1].Field)
}

// alternatives returns the keys of the map at a path that exclude one another, where dest has one of them: a choice
// of its own replaces the other file's.
func alternatives(at fieldpath.Path, dest map[string]any) []string {
	keys := []string{"annotation", "label"}
	isHash := at[len(at)-1].Field == "hash"
	if isHash && slices.ContainsFunc(keys, func(k string) bool { return dest[k] != nil }) {
		return keys
	}
	return nil
}

// brokenIn adds the values of the shared file that could not be taken, where no other layer gives them.
func (f *File) brokenIn(s *shared) {
	if s == nil || s.Document == nil {
		return
	}
	f.MisreadKeys = slices.Concat(f.MisreadKeys, s.MisreadKeys)
	for _, path := range s.Broken {
		if _, elsewhere := f.Index[path]; !elsewhere && document.Below(path, conventionsKey) {
			f.Broken = append(f.Broken, path)
		}
	}
}
