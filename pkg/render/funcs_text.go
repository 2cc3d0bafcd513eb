package render

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// texts gives the texts of scalars; a map or list is an error, because Go would print map[k:v].
func (r *run) texts(values []any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		text, err := r.textOf(v)
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// spent charges a text to the execution.
func (r *run) spent(text string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return text, r.spend(len(text))
}

func noStructure(values []any) error {
	for _, v := range values {
		if isStructure(v) {
			return problemf("write `| toJson`, or `join` for a list", "%s cannot stand inside text", typeName(v))
		}
	}
	return nil
}

func (r *run) print(values ...any) (string, error) {
	if err := noStructure(values); err != nil {
		return "", err
	}
	return r.spent(fmt.Sprint(values...), nil)
}

func (r *run) println(values ...any) (string, error) {
	if err := noStructure(values); err != nil {
		return "", err
	}
	return r.spent(fmt.Sprintln(values...), nil)
}

// printf is fmt.Sprintf, except that a verb that does not fit its value is an error: fmt prints %!d(string=x).
func (r *run) printf(format string, values ...any) (string, error) {
	if err := noStructure(values); err != nil {
		return "", err
	}
	text := fmt.Sprintf(format, values...)
	if strings.Contains(text, "%!") && misprinted(format, values) {
		return "", problemf("use %v, %s for a string, %d for an integer", "printf %q does not fit its values: it gives %q", format, text)
	}
	return r.spent(text, nil)
}

// misprinted tells a complaint of fmt from a value that holds "%!" itself.
func misprinted(format string, values []any) bool {
	harmless := make([]any, len(values))
	for i, v := range values {
		if s, ok := v.(string); ok {
			v = strings.Repeat("x", min(len(s), 1))
		}
		harmless[i] = v
	}
	return strings.Contains(fmt.Sprintf(strings.ReplaceAll(format, "%%", ""), harmless...), "%!")
}

func (r *run) cat(values ...any) (string, error) {
	texts, err := r.texts(values)
	return r.spent(strings.TrimSpace(strings.Join(texts, " ")), err)
}

func (r *run) toString(v any) (string, error) {
	if b, ok := v.([]byte); ok {
		return string(b), nil
	}
	return r.spent(r.textOf(v))
}

func (r *run) quote(values ...any) (string, error) {
	texts, err := r.texts(values)
	for i, text := range texts {
		texts[i] = strconv.Quote(text)
	}
	return r.spent(strings.Join(texts, " "), err)
}

func (r *run) squote(values ...any) (string, error) {
	texts, err := r.texts(values)
	for i, text := range texts {
		texts[i] = "'" + text + "'"
	}
	return r.spent(strings.Join(texts, " "), err)
}

// count reads a number of spaces or items; any integer type is fine.
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

// width charges what indenting lines of text will add, before it is made.
func (r *run) width(n any, text string) (int, error) {
	width, err := count(n)
	if err != nil {
		return 0, err
	}
	if width < 0 {
		return 0, problemf("", "text cannot be indented by %d", width)
	}
	lines := 1 + strings.Count(text, "\n")
	if width > r.left/lines {
		return 0, r.spend(r.left + 1)
	}
	return width, r.spend(len(text) + width*lines)
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
	times, err := count(n)
	if err != nil {
		return "", err
	}
	if times < 0 {
		return "", problemf("", "text cannot be repeated %d times", times)
	}
	if len(text) > 0 && times > r.left/len(text) {
		return "", r.spend(r.left + 1)
	}
	return r.spent(strings.Repeat(text, times), nil)
}

func (r *run) replace(old, to, text string) (string, error) {
	found := strings.Count(text, old)
	if len(to) > 0 && found > r.left/len(to) {
		return "", r.spend(r.left + 1)
	}
	return r.spent(strings.ReplaceAll(text, old, to), nil)
}

func (r *run) join(sep string, list any) (string, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return r.toString(list)
	}
	var items []any
	for i := range v.Len() {
		if item := v.Index(i).Interface(); item != nil {
			items = append(items, item)
		}
	}
	texts, err := r.texts(items)
	if err != nil {
		return "", err
	}
	if len(sep) > 0 && len(items) > r.left/len(sep) {
		return "", r.spend(r.left + 1)
	}
	return r.spent(strings.Join(texts, sep), nil)
}
