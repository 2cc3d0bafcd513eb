package desired

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// RowKind is the kind of upstreams that are rows. No API server serves it.
func RowKind() *kinds.Kind {
	gvk := schema.FromAPIVersionAndKind(config.APIVersion, query.RowKind)
	return &kinds.Kind{GVK: gvk, GVR: gvk.GroupVersion().WithResource("rows")}
}

// InputRowKind is the kind of inputs that are rows. Their namespace is the name of the input, to which alone they
// belong.
func InputRowKind() *kinds.Kind {
	kind := RowKind()
	kind.Namespaced = true
	return kind
}

// maxRowName bounds the name of a row, which is part of owner annotations, logs and messages.
const maxRowName = 200

// RowName is the name of the row with a key. Letters, digits and - . _ ~ : stay as they are, other bytes are %-encoded;
// of a long key it is the beginning, with a digest of the whole.
func RowName(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; isRowNameByte(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		if b.Len() > maxRowName {
			sum := sha256.Sum256([]byte(key))
			return b.String()[:maxRowName/2] + "%" + hex.EncodeToString(sum[:])
		}
	}
	return b.String()
}

func isRowNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~:", c) >= 0
}

// compareRowNames orders rows by key: whole numbers by value, and before text.
func compareRowNames(a, b string) int {
	x, isNumberA := wholeNumber(a)
	y, isNumberB := wholeNumber(b)
	switch {
	case isNumberA && isNumberB:
		return cmp.Compare(x, y)
	case isNumberA:
		return -1
	case isNumberB:
		return 1
	}
	return cmp.Compare(a, b)
}

func wholeNumber(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

func newRow(kind schema.GroupVersionKind, name, uid string, columns map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	u.SetUID(types.UID(uid))
	if columns != nil {
		u.Object["row"] = columns
		sum := canonical.Digest(columns)
		u.SetResourceVersion(hex.EncodeToString(sum[:8]))
	}
	return u
}
