package managed

import (
	"hash/maphash"
	"strings"

	"github.com/distribution/reference"
)

// shapeSeed is for shapes, which are only compared within one process.
var shapeSeed = maphash.MakeSeed()

// Values of a leaf in a shape.
const (
	emptyLeaf = 1 + iota
	filledLeaf
)

// Shape returns a digest of which fields outside of the metadata are owned, and of which of them are empty. Of other
// values, only those count that select what the API server derives. It can be compared within one process.
func (f Fields) Shape(live map[string]any) uint32 {
	if f.IsLeaf() {
		return 0
	}
	sum := f.shapeOfFields(live, "f:metadata")
	return uint32(sum ^ sum>>32)
}

func (f Fields) shapeOf(live any) uint64 {
	if f.IsLeaf() {
		if isEmpty(live) {
			return emptyLeaf
		}
		return filledLeaf
	}
	switch live := live.(type) {
	case map[string]any:
		return f.shapeOfFields(live, "")
	case []any:
		return f.shapeOfItems(live)
	}
	return filledLeaf
}

// shapeOfFields adds up the fields, so that their order does not count.
func (f Fields) shapeOfFields(live map[string]any, except string) uint64 {
	var sum uint64
	for key := range f {
		name, isField := CutField(key)
		below, ok := f.Below(key)
		if !ok || !isField || key == except {
			continue
		}
		value := live[name]
		sum += combine(maphash.String(shapeSeed, key), below.shapeOf(value))
		if text, ok := value.(string); ok && selected(name, text) != "" {
			sum += maphash.String(shapeSeed, selected(name, text))
		}
	}
	return sum
}

// selected is what the value of a field selects: by convention, one called type says which other fields there are, and
// imagePullPolicy depends on whether the image is the latest: it is if its name is valid and has no tag or digest.
func selected(name, value string) string {
	switch name {
	case "type":
		return value
	case "image":
		name, _, _ := strings.Cut(value[strings.LastIndexByte(value, '/')+1:], "@")
		if _, tag, _ := strings.Cut(name, ":"); tag != "" && tag != "latest" {
			return "" // as most are
		}
		named, err := reference.ParseNormalizedNamed(value)
		_, isTagged := named.(reference.Tagged)
		_, isDigested := named.(reference.Digested)
		if err == nil && (isTagged || !isDigested) {
			return "latest"
		}
	}
	return ""
}

func (f Fields) shapeOfItems(list []any) uint64 {
	var sum uint64
	it := f.Items()
	for i, item := range list {
		if below, ok := it.Of(item, i); ok {
			sum += combine(maphash.Bytes(shapeSeed, it.buf), below.shapeOf(item))
		}
	}
	return sum
}

func combine(key, below uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	key = (key ^ below) * odd
	return key ^ key>>32
}

// isEmpty reports whether a value is none, or has nothing in it.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
