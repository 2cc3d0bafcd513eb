package engine

import (
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// confirmation watches the key of the ConfigMap under which a confirmation is written, as long as one is waited for. A nil
// one says nothing.
type confirmation struct {
	at    config.Confirm
	watch *informers.Object
	// failed is why it cannot be watched; nil where it can.
	failed atomic.Pointer[string]
}

// openConfirmation begins to watch; nil where the config names no ConfigMap.
func (s *session) openConfirmation() *confirmation {
	at := s.pipeline.Config.Guard.Confirm
	if at == nil {
		return nil
	}
	c := &confirmation{at: *at}
	var err error
	c.watch, err = s.engine.informers.Object(s.generation.acting, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		pipeline.Ref{Namespace: at.Namespace, Name: at.ConfigMap}, c.onWatchResult)
	if err != nil {
		c.onWatchResult(informers.Key{}, err)
	}
	return c
}

// onWatchResult is told how each list and watch went.
func (c *confirmation) onWatchResult(key informers.Key, err error) {
	switch {
	case err == nil:
		c.failed.Store(nil)
	case errors.Is(err, informers.ErrCut):
	case apierrors.IsForbidden(err):
		text := " (but " + key.Identity.Forbidden(fmt.Sprintf("watching ConfigMap %s/%s", c.at.Namespace, c.at.ConfigMap), "get, list and watch on it", err) + ")"
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

// confirms tells whether the ConfigMap confirms that change.
func (c *confirmation) confirms(digest string) bool {
	if c == nil {
		return false
	}
	cm := c.watch.Get()
	if cm == nil {
		return false
	}
	value, _, _ := unstructured.NestedString(cm.Object, "data", c.at.Key)
	return value == digest
}

func (c *confirmation) close() {
	if c != nil {
		c.watch.Close()
	}
}
