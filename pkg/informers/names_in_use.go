package informers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
)

// NamesInUse says which names in use in the cluster a changed config does not name: nothing would remove the finalizer,
// and fields that leave a template would stay, since their field manager owns them.
func (c *Cache) NamesInUse(changed *config.Operator) []string {
	var list []string
	had, has := &c.pipeline.Config.Conventions, &changed.Conventions
	for _, name := range dropped(had.Finalizers(), has.Finalizers()) {
		if n := countFinalizer(c, name); n > 0 {
			list = append(list, fmt.Sprintf(
				"the config no longer names the finalizer %s, which %d upstreams still have and nothing "+
					"would remove: set conventions.previous.finalizer: %s", name, n, name))
		}
	}
	for _, name := range dropped(had.FieldManagers(), has.FieldManagers()) {
		if n := countManaged(c, name == had.FieldManager); n > 0 {
			list = append(list, fmt.Sprintf(
				"the config no longer names the field manager %s, which owns fields of %d downstreams; "+
					"fields that are removed from a template would stay: set conventions.previous.fieldManager: %s", name, n, name))
		}
	}
	return list
}

func dropped(had, has []string) []string {
	return slices.DeleteFunc(had, func(name string) bool { return slices.Contains(has, name) })
}

// countManaged counts the downstreams with fields of the current field manager, or those that are still the previous
// one's, in the caches.
func countManaged(c *Cache, current bool) int {
	managed := map[types.UID]bool{} // downstreams of one kind see the same objects
	for _, live := range c.Downstreams() {
		if current && live.Managed && !live.NeedsTakeover || !current && live.NeedsTakeover && live.HasPreviousNames {
			managed[live.UID] = true
		}
	}
	return len(managed)
}

func countFinalizer(c *Cache, name string) int {
	n := 0
	for _, ref := range c.Upstreams() {
		if up, err := c.Upstream(ref); err == nil && up != nil && slices.Contains(up.GetFinalizers(), name) {
			n++
		}
	}
	return n
}
