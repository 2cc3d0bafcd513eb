package decode

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/staged"
	"github.com/corollary-dev/corollary/pkg/config/tags"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// decoder fills a Go value from JSON values, strictly: every field must be known, every type fit. It does not
// stop at an error; what is in error is left as it was.
type decoder struct {
	*document.Document
	errs    config.Errors
	broken  []string // display paths of values that were not taken
	unknown []string // display paths of fields that do not exist
}

// Decode fills out, a pointer to a struct, with the document's values, and returns what is wrong with them as the text
// has them and as values of out's fields. unknown are the display paths of fields that do not exist.
func Decode(doc *document.Document, out any) (errs config.Errors, unknown []string) {
	d := decoder{Document: doc}
	d.object(doc.Values, reflect.ValueOf(out).Elem(), nil)
	doc.Broken = append(doc.Broken, d.broken...)
	errs = d.errs
	for _, e := range doc.Errs {
		// Of a whole that is of the wrong type, such as a template written as YAML, the parts do not matter.
		if !slices.ContainsFunc(d.broken, func(b string) bool { return e.Path != b && document.Below(e.Path, b) }) {
			errs = append(errs, e)
		}
	}
	return errs, d.unknown
}

func (d *decoder) fail(p fieldpath.Path, fix, format string, args ...any) {
	d.errs = append(d.errs, d.Errorf(document.Display(p), fix, format, args...))
	d.broken = append(d.broken, document.Display(p))
}

// field is the struct field that a value is decoded for: what it holds, and what it may hold.
type field struct {
	holds string   // "cel", "template" or ""
	enum  []string // allowed values, nil for any
}

// decode fills out with v. Null is as good as absent, except as an item or entry, which it cannot stand for.
func (d *decoder) decode(v any, out reflect.Value, p fieldpath.Path, f field) {
	switch {
	case out.Kind() == reflect.Interface:
		if v != nil {
			out.Set(reflect.ValueOf(v))
		}
	case out.Type() == reflect.TypeFor[common.Duration]():
		d.duration(v, out, p)
	case out.Type() == reflect.TypeFor[staged.Step]():
		d.step(v, out, p, f)
	default:
		d.byKind(v, out, p, f)
	}
}

func (d *decoder) byKind(v any, out reflect.Value, p fieldpath.Path, f field) {
	switch out.Kind() {
	case reflect.Pointer:
		elem := reflect.New(out.Type().Elem())
		before := len(d.broken)
		d.decode(v, elem.Elem(), p, f)
		if !slices.Contains(d.broken[before:], document.Display(p)) {
			out.Set(elem)
		}
	case reflect.Struct:
		d.object(v, out, p)
	case reflect.Map:
		d.entries(v, out, p, f)
	case reflect.Slice:
		d.items(v, out, p, f)
	case reflect.String:
		d.text(v, out, p, f)
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			out.SetBool(b)
			return
		}
		fix := "write true or false"
		if v == "true" || v == "false" {
			fix = fmt.Sprintf("take the quotes off: %s", v)
		}
		d.fail(p, fix, "found %s, wanted true or false", d.found(v, p))
	case reflect.Int:
		if i, ok := v.(int64); ok && i >= math.MinInt32 && i <= math.MaxInt32 {
			out.SetInt(i)
			return
		}
		d.fail(p, "write a number", "found %s, wanted a whole number", d.found(v, p))
	}
}

func (d *decoder) object(v any, out reflect.Value, p fieldpath.Path) {
	if short, ok := tags.Short(out.Type()); ok {
		if text, isText := v.(string); isText {
			out.FieldByIndex(short.Index).SetString(text)
			return
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		d.fail(p, "write its fields below it: "+strings.Join(tags.Names(out.Type()), ", "),
			"found %s, wanted a map", d.found(v, p))
		return
	}
	for _, key := range document.SortedKeys(m) {
		sf, ok := tags.Named(out.Type(), key)
		if !ok {
			if e := d.MisreadKey(document.Display(p.Child(key))); e != nil {
				d.errs = append(d.errs, e)
				continue
			}
			fix, meant := document.Suggest(key, tags.Names(out.Type()), "known here are")
			d.fail(p.Child(key), fix, "unknown field")
			d.unknown = append(d.unknown, document.Display(p.Child(key)))
			if _, given := m[meant]; meant != "" && !given {
				d.broken = append(d.broken, document.Display(p.Child(meant))) // not missing, only misspelt
			}
			continue
		}
		if m[key] != nil {
			d.decode(m[key], out.FieldByIndex(sf.Index), p.Child(key), field{holds: sf.Tag.Get("holds"), enum: tags.Enum(sf)})
		}
	}
}

func (d *decoder) entries(v any, out reflect.Value, p fieldpath.Path, f field) {
	m, ok := v.(map[string]any)
	if !ok {
		d.fail(p, "write KEY: VALUE below it", "found %s, wanted a map", d.found(v, p))
		return
	}
	out.Set(reflect.MakeMapWithSize(out.Type(), len(m)))
	for _, key := range document.SortedKeys(m) {
		elem := reflect.New(out.Type().Elem()).Elem()
		before := len(d.broken)
		d.decode(m[key], elem, p.Child(key), f)
		if len(d.broken) == before {
			out.SetMapIndex(reflect.ValueOf(key), elem)
		}
	}
}

func (d *decoder) items(v any, out reflect.Value, p fieldpath.Path, f field) {
	list, ok := v.([]any)
	if !ok {
		d.fail(p, "write a list, its items below it after hyphens", "found %s, wanted a list", d.found(v, p))
		return
	}
	// Items in error stay as zero values, so that the others keep their numbers in errors.
	out.Set(reflect.MakeSlice(out.Type(), len(list), len(list)))
	for i, item := range list {
		at := slices.Concat(p, fieldpath.Path{{Kind: fieldpath.IndexStep, Index: i}})
		if item == nil {
			if !d.Reported(document.Display(at)) {
				d.fail(at, "remove the item or give it a value", "found null, wanted an item")
			}
			continue
		}
		d.decode(item, out.Index(i), at, f)
	}
}

func (d *decoder) text(v any, out reflect.Value, p fieldpath.Path, f field) {
	s, ok := v.(string)
	if !ok {
		want, fix := wantText(v, f, lastKey(p), d.written(v, p))
		if len(f.enum) > 0 {
			fix = "write one of " + strings.Join(f.enum, ", ")
		}
		d.fail(p, fix, "found %s, wanted %s", d.found(v, p), want)
		return
	}
	if f.holds == "cel" && document.CutByComment(d.Index[document.Display(p)].Node) {
		d.fail(p, "quote the whole expression, or write it below "+lastKey(p)+": |",
			"YAML reads everything after %q as a comment", document.Clip(s))
		return
	}
	if len(f.enum) > 0 && s != "" && !slices.Contains(f.enum, s) {
		d.fail(p, "write one of "+strings.Join(f.enum, ", "), "unknown value %q", document.Clip(s))
		return
	}
	out.SetString(s)
}

func (d *decoder) duration(v any, out reflect.Value, p fieldpath.Path) {
	const fix = "write a number and a unit, such as 5s, 10m or 1h30m"
	s, ok := v.(string)
	if !ok {
		d.fail(p, fix, "found %s, wanted a duration", d.found(v, p))
		return
	}
	dur, err := time.ParseDuration(s)
	if err != nil {
		d.fail(p, fix, "%q is not a duration", document.Clip(s))
		return
	}
	out.SetInt(int64(dur))
}

// step takes a number without quotes, too.
func (d *decoder) step(v any, out reflect.Value, p fieldpath.Path, f field) {
	if n, ok := v.(int64); ok {
		v = strconv.FormatInt(n, 10)
	}
	d.text(v, out, p, f)
}

// wantText says what a text field wants and how to make text of v, which YAML did not read as text.
func wantText(v any, f field, key, written string) (want, fix string) {
	want, noun := "text", "text"
	switch f.holds {
	case "cel":
		want, noun = "text with a CEL expression", "expression"
	case "template":
		want, noun = "text with a template", "template"
	}
	switch v.(type) {
	case map[string]any, []any:
		if key == "template" {
			return want, "write template: | and the document below it"
		}
		return want, "quote the " + noun + ", YAML reads it as something else"
	case nil:
		return want, `give it a value, or "" for empty text`
	default:
		if key == "maxChanged" { // a number alone is a likely mistake, and quoted it would be the next
			return "a share", "write it with a percent sign: " + written + "%"
		}
		return want, "quote it: " + document.QuoteYAML(written)
	}
}

// written returns a scalar as it is written in the file: yes and 1.10 are not what YAML reads.
func (d *decoder) written(v any, p fieldpath.Path) string {
	if n := d.Index[document.Display(p)].Node; n != nil && n.Value != "" {
		return n.Value
	}
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

// found names a value as messages show it.
func (d *decoder) found(v any, p fieldpath.Path) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case bool:
		return "the boolean " + document.Clip(d.written(v, p))
	case string:
		return "the text " + strconv.Quote(document.Clip(v))
	default:
		return "the number " + document.Clip(d.written(v, p))
	}
}

func lastKey(p fieldpath.Path) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].Kind == fieldpath.FieldStep {
			return p[i].Field
		}
	}
	return ""
}
