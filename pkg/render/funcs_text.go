package render

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// texts returns the texts of scalars, and their total length. A map or list is an error, because Go would print map[k:v].
func (r *run) texts(values []any) (texts []string, length int, err error) {
	if err := r.spend(times(24, len(values))); err != nil {
		return nil, 0, err
	}
	if err := r.work(len(values) / 16); err != nil {
		return nil, 0, err
	}
	out := make([]string, len(values))
	for i, v := range values {
		text, err := r.textOf(v)
		if err != nil {
			return nil, 0, err
		}
		out[i], length = text, plus(length, len(text))
	}
	return out, length, nil
}

func noStructure(values []any) error {
	for _, v := range values {
		if isStructure(v) {
			return problemf("write `| toJson`, or `join` for a list", "%s cannot be used inside text", typeName(v))
		}
	}
	return nil
}

// scalarBytes is longer than any number.
const scalarBytes = 400

// printed returns the maximum length of scalars in text form.
func printed(values []any) int {
	n := 0
	for _, v := range values {
		switch v := v.(type) {
		case string:
			n = plus(n, len(v))
		case int64, int, bool, nil:
			n = plus(n, 24)
		default:
			n = plus(n, scalarBytes+textLength([]reflect.Value{reflect.ValueOf(v)}))
		}
	}
	return n
}

// escaped wraps a function of text/template that prints its arguments with up to perByte bytes for each byte.
func (r *run) escaped(perByte int, escape func(...any) string) func(...any) (string, error) {
	return func(values ...any) (string, error) {
		if err := noStructure(values); err != nil {
			return "", err
		}
		if err := r.textCost(times(2*perByte, printed(values)+len(values))); err != nil {
			return "", err
		}
		return escape(values...), nil
	}
}

func (r *run) print(values ...any) (string, error) {
	return r.escaped(1, fmt.Sprint)(values...)
}

func (r *run) println(values ...any) (string, error) {
	return r.escaped(1, fmt.Sprintln)(values...)
}

// printf is fmt.Sprintf, except that a verb that does not fit its value is an error: fmt prints %!d(string=x).
func (r *run) printf(format string, values ...any) (string, error) {
	if err := noStructure(values); err != nil {
		return "", err
	}
	if err := r.textCost(times(bufferFactor, formatted(format, values))); err != nil {
		return "", err
	}
	text := fmt.Sprintf(format, values...)
	if strings.Contains(text, "%!") && hasPrintError(format, values) {
		return "", problemf("use %v, %s for a string, %d for an integer", "printf %q does not fit its values: it gives %q", short(format),
			short(text))
	}
	return text, nil
}

// formatted returns the maximum length of a format's result. Constant widths and precisions count as written, computed ones as
// fmt's limit. A verb can use any argument by index; if one does, each counts as the longest.
func formatted(format string, values []any) int {
	const fmtLimit = 1_000_000
	n := plus(len(format), printed(values))
	named, longest := strings.Contains(format, "["), 0
	for _, v := range values {
		longest = max(longest, printed([]any{v}))
	}
	for rest := format; ; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			return n
		}
		rest = rest[at+1:]
		end := strings.IndexFunc(rest, func(c rune) bool { return !strings.ContainsRune("+-# 0123456789.*[]", c) })
		if end < 0 {
			end = len(rest)
		}
		verb := byte(' ')
		if end < len(rest) {
			verb = rest[end]
		}
		n = plus(n, 64+fmtLimit*strings.Count(rest[:end], "*"))
		for _, number := range strings.FieldsFunc(rest[:end], func(c rune) bool { return c < '0' || c > '9' }) {
			width, err := strconv.Atoi(number)
			if err != nil {
				width = fmtLimit
			}
			n = plus(n, min(width, fmtLimit))
		}
		if named {
			n = plus(n, longest)
		}
		if strings.IndexByte("qxXU", verb) >= 0 {
			n = plus(n, times(9, longest))
		}
		rest = rest[end:]
	}
}

// short shortens a text for a message.
func short(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// hasPrintError reports whether the result has an error of fmt, such as %!d(…), that is not part of a value.
func hasPrintError(format string, values []any) bool {
	harmless := make([]any, len(values))
	for i, v := range values {
		if s, ok := v.(string); ok {
			v = strings.Repeat("x", min(len(s), 1))
		}
		harmless[i] = v
	}
	return strings.Contains(fmt.Sprintf(strings.ReplaceAll(format, "%%", ""), harmless...), "%!")
}

// FitsVerbs reports whether printf takes values of these schema types with a format. A type that is not string, integer or boolean is
// one of which nothing is known, and fits.
func FitsVerbs(format string, types []string) bool {
	samples := make([]any, len(types))
	for i, t := range types {
		switch t {
		case "string":
			samples[i] = ""
		case "integer":
			samples[i] = int64(1)
		case "boolean":
			samples[i] = true
		default:
			samples[i] = unknown{}
		}
	}
	return strings.Contains(format, "*") || !hasPrintError(format, samples) // * takes a width from the values
}

// unknown fits each verb.
type unknown struct{}

// Format prints nothing.
func (unknown) Format(fmt.State, rune) {}

func (r *run) cat(values ...any) (string, error) {
	texts, length, err := r.texts(values)
	if err != nil {
		return "", err
	}
	if err := r.textCost(plus(length, len(texts))); err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.Join(texts, " ")), nil
}

func (r *run) toString(v any) (string, error) {
	if b, ok := v.([]byte); ok {
		return string(b), r.textCost(len(b))
	}
	return r.textOf(v)
}

func (r *run) toStrings(v any) ([]string, error) {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		text, err := r.toString(v)
		return []string{text}, err
	}
	items, err := r.presentItems(list)
	if err != nil {
		return nil, err
	}
	texts, _, err := r.texts(items)
	return texts, err
}

// presentItems returns the items of a list that are not null.
func (r *run) presentItems(list reflect.Value) ([]any, error) {
	if err := r.spend(times(3*24, list.Len())); err != nil {
		return nil, err
	}
	var items []any
	for i := range list.Len() {
		if item := list.Index(i).Interface(); item != nil {
			items = append(items, item)
		}
	}
	return items, nil
}

func (r *run) quote(values ...any) (string, error) {
	texts, _, err := r.texts(values)
	if err != nil {
		return "", err
	}
	for i, text := range texts {
		if texts[i], err = r.quoted(text); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, " "), nil
}

func (r *run) squote(values ...any) (string, error) {
	texts, length, err := r.texts(values)
	if err != nil {
		return "", err
	}
	if err := r.textCost(plus(2*length, 6*len(texts))); err != nil {
		return "", err
	}
	for i, text := range texts {
		texts[i] = "'" + text + "'"
	}
	return strings.Join(texts, " "), nil
}

// count returns a number of spaces or items, from any integer type.
func count(v any) (int, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return int(r.Int()), nil
	case r.CanFloat() && r.Float() == float64(int64(r.Float())):
		return int(r.Float()), nil
	}
	return 0, problemf("write `| int`", "%s is not a whole number", typeName(v))
}

// width returns the width of an indentation, and takes the cost of indenting the lines of text.
func (r *run) width(n any, text string) (int, error) {
	width, err := count(n)
	if err != nil {
		return 0, err
	}
	if width < 0 {
		return 0, problemf("", "text cannot be indented by %d", width)
	}
	lines := 1 + strings.Count(text, "\n")
	return width, r.textCost(times(bufferFactor, plus(len(text), times(width, lines))))
}

func (r *run) indent(n any, text string) (string, error) {
	width, err := r.width(n, text)
	if err != nil {
		return "", err
	}
	return indentText(width, text), nil
}

func (r *run) nindent(n any, text string) (string, error) {
	text, err := r.indent(n, text)
	return "\n" + text, err
}

func (r *run) repeat(n any, text string) (string, error) {
	repeats, err := count(n)
	if err != nil {
		return "", err
	}
	if repeats < 0 {
		return "", problemf("", "text cannot be repeated %d times", repeats)
	}
	if text == "" {
		return "", nil
	}
	if err := r.textCost(times(repeats, len(text))); err != nil {
		return "", err
	}
	return strings.Repeat(text, repeats), nil
}

func (r *run) replace(old, to, text string) (string, error) {
	found := strings.Count(text, old)
	if err := r.textCost(plus(len(text), times(found, len(to)))); err != nil {
		return "", err
	}
	if err := r.work(found / 16); err != nil {
		return "", err
	}
	return strings.ReplaceAll(text, old, to), nil
}

func (r *run) join(sep string, list any) (string, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return r.toString(list)
	}
	items, err := r.presentItems(v)
	if err != nil {
		return "", err
	}
	texts, length, err := r.texts(items)
	if err != nil {
		return "", err
	}
	if err := r.textCost(plus(length, times(len(texts), len(sep)))); err != nil {
		return "", err
	}
	return strings.Join(texts, sep), nil
}
