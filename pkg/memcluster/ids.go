package memcluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// ids makes uids and names by a counter, so that every run has the same ones.
type ids struct {
	uid  func(n int) types.UID
	last int
}

func (i *ids) newUID() types.UID {
	i.last++
	return i.uid(i.last)
}

// nameSuffixes are the characters of generated names.
const nameSuffixes = "bcdfghjklmnpqrstvwxz2456789"

func (i *ids) generateName(prefix string) string {
	i.last++
	suffix := ""
	for n := i.last; len(suffix) < 5; n /= len(nameSuffixes) {
		suffix = string(nameSuffixes[n%len(nameSuffixes)]) + suffix
	}
	return fmt.Sprintf("%.58s%s", prefix, suffix)
}
