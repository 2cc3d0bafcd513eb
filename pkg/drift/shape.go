package drift

import "hash/maphash"

// shapeSeed is for shapes, which are only compared within one process.
var shapeSeed = maphash.MakeSeed()

// Values of a leaf in a shape.
const (
	emptyLeaf = 1 + iota
	filledLeaf
)

// shapeOf returns a digest of which fields outside of the metadata are owned, and of which of them are empty. Other values do not count,
// except those of fields called type: by convention, they select which other fields there are. live is the object.
func shapeOf(live map[string]any, owned fields) uint32 {
	if owned.isLeaf() {
		return 0
	}
	sum := owned.shapeOfFields(live, "f:metadata")
	return uint32(sum ^ sum>>32)
}

func (f fields) shape(live any) uint64 {
	if f.isLeaf() {
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
func (f fields) shapeOfFields(live map[string]any, except string) uint64 {
	var sum uint64
	for key := range f {
		name, isField := cutField(key)
		below, ok := f.below(key)
		if !ok || !isField || key == except {
			continue
		}
		value := live[name]
		sum += combine(maphash.String(shapeSeed, key), below.shape(value))
		if text, ok := value.(string); ok && name == "type" {
			sum += maphash.String(shapeSeed, text)
		}
	}
	return sum
}

func (f fields) shapeOfItems(list []any) uint64 {
	var sum uint64
	it := f.items()
	for i, item := range list {
		if below, ok := it.of(item, i); ok {
			sum += combine(maphash.Bytes(shapeSeed, it.buf), below.shape(item))
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
