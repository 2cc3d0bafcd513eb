package places

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Items are found as by looking at each of them, and a list is read once for all that are looked for.
func TestItemIndex(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	values := []any{"a", "1", "", int64(1), 1.0, 1.5, true, nil, map[string]any{"k": "v"}, []any{"x"}}
	value := func() any { return values[random.IntN(len(values))] }
	found := 0
	for range 300 {
		list := make([]any, random.IntN(8))
		for i := range list {
			if list[i] = any(map[string]any{"name": value(), "zone": value(), "other": "x"}); random.IntN(8) == 0 {
				list[i] = "no map"
			}
		}
		items := Items{}
		for range 20 {
			keys := map[string]any{"name": value(), "zone": value()}
			want := slices.IndexFunc(list, func(item any) bool {
				fields, ok := item.(map[string]any)
				return ok && Equal(fields["name"], keys["name"]) && Equal(fields["zone"], keys["zone"])
			})
			if got := items.find(list, keys); got != want {
				t.Fatalf("%v in %v is at %d, not at %d", keys, list, got, want)
			}
			if want >= 0 {
				found++
			}
			for _, other := range []any{"name", nil, map[string]any{"name": "a"}, map[string]any{}} { // not the keys of the list
				if got := items.find(list, other); got != -1 {
					t.Fatalf("%v in %v is at %d", other, list, got)
				}
			}
		}
		if len(items) > 1 {
			t.Fatalf("%d indexes of one list", len(items))
		}
	}
	if found < 50 {
		t.Errorf("only %d items were found", found)
	}
}
