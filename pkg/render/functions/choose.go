package functions

import (
	"encoding/base64"

	"github.com/Masterminds/semver/v3"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// fromBase64 fails on bad input. sprig's own prints the error into the document.
func fromBase64(text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", values.Problemf("", "this is no base64: %v", err)
	}
	return string(raw), nil
}

// defaultTo returns value, or d if value is missing, null, "", [] or {}. Zero and false are values: sprig's function
// would turn `replicas: 0` into 1.
func defaultTo(d any, value ...any) any {
	if len(value) == 0 || values.IsEmpty(value[0]) {
		return d
	}
	return value[0]
}

// coalesce returns the first value that is not empty, as for default.
func coalesce(args ...any) any {
	for _, v := range args {
		if !values.IsEmpty(v) {
			return v
		}
	}
	return nil
}

func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, values.Problemf("", "%v", message)
	}
	return value, nil
}

func fail(message string) (string, error) {
	return "", values.Problemf("", "%v", message)
}

// dig reads nested fields: `dig "a" "b" DEFAULT MAP`. If a field is null or missing, it returns the default.
func dig(args ...any) (any, error) {
	if len(args) < 3 {
		return nil, values.Problemf("", "dig needs at least one key, a default and a map")
	}
	value := args[len(args)-1]
	for _, arg := range args[:len(args)-2] {
		key, ok := arg.(string)
		if !ok {
			return nil, values.Problemf("", "dig needs keys that are strings, not %s", values.TypeName(arg))
		}
		next, ok := values.Field(value, key)
		if !ok {
			return nil, values.Problemf("", "%s has no field %q", values.TypeName(value), key)
		}
		if next == nil {
			return args[len(args)-2], nil
		}
		value = next
	}
	return value, nil
}

// semverParts returns the parts of a version as a map, because templates can only read fields of maps.
func semverParts(b *values.Budget, text string) (map[string]any, error) {
	if err := shortVersions(b, text); err != nil {
		return nil, err
	}
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, values.Problemf("", "%q is not a semantic version: %v", text, err)
	}
	return map[string]any{
		"Major": int64(v.Major()), "Minor": int64(v.Minor()), "Patch": int64(v.Patch()),
		"Prerelease": v.Prerelease(), "Metadata": v.Metadata(), "Original": v.Original(),
	}, nil
}
