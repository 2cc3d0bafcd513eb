package load

import (
	"errors"
	"fmt"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// delimiter is what koanf would split keys at. Keys of Kubernetes hold dots and slashes; none holds a NUL, and
// a file with such a key is refused.
const delimiter = "\x00"

// layer puts the values of the file over those of its conventionsFile and the overrides over both, in their order,
// and returns the result. Values do not go through koanf's flat paths: what an override names may be an item of a
// list, or a key with dots.
func (f *File) layer() (map[string]any, config.Errors) {
	var errs config.Errors
	k := koanf.New(delimiter)
	if err := k.Load(confmap.Provider(f.Values, ""), nil); err != nil {
		return nil, config.Errors{f.Errorf("", "", "reading the file's values: %v", err)}
	}
	if f.shared != nil && f.shared.conventions != nil {
		err := k.Load(confmap.Provider(f.shared.conventions, ""), nil,
			koanf.WithMergeFunc(func(src, dest map[string]any) error {
				f.shared.under(dest, src, f.Index)
				return nil
			}))
		if err != nil {
			return nil, config.Errors{f.Errorf(conventionsFileKey, "", "reading its values: %v", err)}
		}
	}
	for _, o := range f.overrides {
		source := confmap.Provider(map[string]any{o.path.String(): o.value}, "")
		err := k.Load(source, nil, koanf.WithMergeFunc(func(src, dest map[string]any) error {
			value := src[o.path.String()]
			at, err := numbered(dest, o.path)
			if err != nil {
				return err
			}
			if err := fieldpath.Set(dest, at, value); err != nil {
				return err
			}
			f.Index.Replace(at, o.source, o.index)
			return nil
		}))
		if err != nil {
			errs = append(errs, overrideError(o, err))
		}
	}
	return k.Raw(), errs
}

func overrideError(o override, err error) *config.Error {
	e := &config.Error{File: o.source, Path: document.Display(o.path), Problem: err.Error(),
		Fix: "name a place that the config has"}
	var access *fieldpath.AccessError
	if errors.As(err, &access) {
		at := document.Display(access.At)
		if at == "" {
			at = "the config"
		}
		e.Problem = at + " " + access.Problem
	}
	return e
}

// numbered replaces selectors by item numbers, which is how errors and the index name items.
func numbered(obj map[string]any, p fieldpath.Path) (fieldpath.Path, error) {
	out := make(fieldpath.Path, 0, len(p))
	for i, s := range p {
		if s.Kind == fieldpath.SelectorStep {
			list, _ := fieldpath.Get(obj, out)
			items, isList := list.([]any)
			n := -1
			for j := range items {
				if _, ok := fieldpath.Get([]any{items[j]}, fieldpath.Path{s}); ok {
					n = j
					break
				}
			}
			if n < 0 && isList {
				return nil, &fieldpath.AccessError{Path: p, At: p[:i], Problem: fmt.Sprintf("has no item %s", s)}
			}
			s = fieldpath.Step{Kind: fieldpath.IndexStep, Index: max(n, 0)}
		}
		out = append(out, s)
	}
	return out, nil
}
