package engine

import (
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// confirmation watches the key of the ConfigMap under which a confirmation is written, as long as one is waited for. A nil
// one says nothing.
type confirmation struct {
	at    config.Confirm
	watch stores
	// failed is why it cannot be watched; nil where it can.
	failed atomic.Pointer[string]
}

// openConfirmation begins to watch; nil where the config names no ConfigMap.
func (s *session) openConfirmation() *confirmation {
	at := s.Pipeline.Config.Guard.Confirm
	if at == nil {
		return nil
	}
	c := &confirmation{at: *at}
	key := watchKey{Identity: s.acting, GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Namespace: at.Namespace, Fields: "metadata.name=" + at.ConfigMap, View: wholeView}
	sub, err := s.engine.watches.subscribe(key, keepWhole, cache.ResourceEventHandlerFuncs{}, c.heard)
	if err != nil {
		c.heard(key, err)
		return c
	}
	c.watch = stores{at.Namespace: sub}
	return c
}

// heard is told how each list and watch went.
func (c *confirmation) heard(key watchKey, err error) {
	switch {
	case err == nil:
		c.failed.Store(nil)
	case errors.Is(err, errWatchCut):
	case apierrors.IsForbidden(err):
		text := " (but " + key.Identity.forbidden(fmt.Sprintf("watching ConfigMap %s/%s", c.at.Namespace, c.at.ConfigMap), "get, list and watch on it", err) + ")"
		c.failed.Store(&text)
	default:
		text := fmt.Sprintf(" (but ConfigMap %s/%s cannot be watched: %v)", c.at.Namespace, c.at.ConfigMap, err)
		c.failed.Store(&text)
	}
}

// trouble is what keeps a confirmation from being heard, in words that may follow others; empty where nothing does.
func (c *confirmation) trouble() string {
	if c == nil {
		return ""
	}
	if text := c.failed.Load(); text != nil {
		return *text
	}
	return ""
}

// says tells whether the ConfigMap confirms that change.
func (c *confirmation) says(digest string) bool {
	if c == nil {
		return false
	}
	cm, _ := c.watch.get(pipeline.Ref{Namespace: c.at.Namespace, Name: c.at.ConfigMap}).(*unstructured.Unstructured)
	if cm == nil {
		return false
	}
	value, _, _ := unstructured.NestedString(cm.Object, "data", c.at.Key)
	return value == digest
}

func (c *confirmation) close() {
	if c != nil {
		c.watch.close()
	}
}
