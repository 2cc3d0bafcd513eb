package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestKeysOfConventions: Keys has every annotation and label that the type of conventions can name.
func TestKeysOfConventions(t *testing.T) {
	var c Conventions
	var want []ConventionKey
	fillKeys(reflect.ValueOf(&c).Elem(), "", &want)
	if len(want) < 8 {
		t.Fatalf("only %d keys were found", len(want))
	}
	got := c.Keys()
	byPath := func(a, b ConventionKey) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(got, byPath)
	slices.SortFunc(want, byPath)
	if !slices.Equal(got, want) {
		t.Errorf("Keys gives\n%v\nand the type has\n%v", got, want)
	}
	if got := (&Conventions{}).Keys(); slices.ContainsFunc(got, func(k ConventionKey) bool { return k.Annotation+k.Label != "" }) {
		t.Errorf("conventions without keys have %v", got)
	}
}

// fillKeys sets every annotation and label below v to its own path.
func fillKeys(v reflect.Value, at string, keys *[]ConventionKey) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillKeys(v.Elem(), at, keys)
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			fillKeys(v.Field(i), strings.TrimPrefix(at+"."+name, "."), keys)
		}
	case reflect.String:
		switch {
		case strings.HasSuffix(at, ".annotation"):
			*keys = append(*keys, ConventionKey{Path: at, Annotation: at})
			v.SetString(at)
		case strings.HasSuffix(at, ".label"):
			*keys = append(*keys, ConventionKey{Path: at, Label: at})
			v.SetString(at)
		}
	}
}
