package gate

import (
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// confirmation watches the ConfigMap key that confirms a change, while guard waits. A nil one confirms nothing.
type confirmation struct {
	at    common.Confirm
	watch *informers.Object
	// failed is why the ConfigMap cannot be watched; nil if it can.
	failed atomic.Pointer[string]
}

// Decision watches the key of a ConfigMap in which a person decides; nil for none, where nothing is ever decided.
func (g *Gate) Decision(at *common.Confirm) guard.Confirmation {
	if at == nil {
		return (*confirmation)(nil)
	}
	c := &confirmation{at: *at}
	var err error
	c.watch, err = g.Informers.Object(g.Identity, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		operator.Ref{Namespace: at.Namespace, Name: at.ConfigMap}, c.onWatchResult)
	if err != nil {
		c.onWatchResult(informers.Key{}, err)
	}
	return c
}

// onWatchResult is called with the result of each list and watch.
func (c *confirmation) onWatchResult(key informers.Key, err error) {
	switch {
	case err == nil:
		c.failed.Store(nil)
	case errors.Is(err, informers.ErrCut):
	case apierrors.IsForbidden(err):
		text := " (but " + key.Identity.Forbidden(fmt.Sprintf("watching ConfigMap %s/%s", c.at.Namespace, c.at.ConfigMap),
			"get, list and watch on it", err) + ")"
		c.failed.Store(&text)
	default:
		text := fmt.Sprintf(" (but ConfigMap %s/%s cannot be watched: %v)", c.at.Namespace, c.at.ConfigMap, err)
		c.failed.Store(&text)
	}
}

// Problem says why no confirmation can be read, as an addition to a message; empty if it can.
func (c *confirmation) Problem() string {
	if c == nil {
		return ""
	}
	if text := c.failed.Load(); text != nil {
		return *text
	}
	return ""
}

// Digest is what the ConfigMap confirms; empty for nothing.
func (c *confirmation) Digest() string {
	if c == nil {
		return ""
	}
	cm := c.watch.Get()
	if cm == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(cm.Object, "data", c.at.Key)
	return value
}

// Close ends the watch.
func (c *confirmation) Close() {
	if c != nil {
		c.watch.Close()
	}
}
