package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/backup/contents"
)

// tries is how often a kind is listed from the beginning where its pages have grown too old.
const tries = 5

// Backup writes the objects of some kinds. Kinds are listed in their order: owners come before what they own.
type Backup struct {
	Client     dynamic.Interface
	Kinds      []Selection
	Operators  []archive.Operator
	Recipients []age.Recipient // for Secrets; empty: none may be among the kinds
	// Recorded are the kinds that an object's status names and that are not among Kinds: they are written after these, as
	// what is owned. Nil: none.
	Recorded func(*unstructured.Unstructured) []Selection
	// Unread are the kinds of these that the user may not list, or not in a namespace, after Run.
	Unread []string
	begun  int // the index of the kind that is being written
}

// Selection is a kind, and which of its objects are wanted.
type Selection struct {
	GVK                   schema.GroupVersionKind
	Resource              string
	Namespaced, HasStatus bool
	// Custom kinds may have a CustomResourceDefinition, which is written too.
	Custom bool
	// Namespaces are those that are listed; none: all at once.
	Namespaces []string
	// Choices: an object is wanted if one of them matches it.
	Choices []Choice
	// recorded are those of the namespaces that only a status names: what may not be listed there does not keep the rest
	// from being written.
	recorded []string
}

// Choice matches objects.
type Choice struct {
	Selector labels.Selector
	// Namespaces has those of the objects; nil: all.
	Namespaces map[string]bool
	// Owned asks for an owner among the objects that were written before.
	Owned bool
	// Rows asks for an owner that is a row of this operator, which is not written; empty: it does not. Marks are the
	// annotations that may name it.
	Rows  string
	Marks []string
}

// Run writes the backup to a directory or a .tar.zst file, under a temporary name until it is complete. It returns the
// manifest, and false where an equal backup is there already.
func (b *Backup) Run(ctx context.Context, output string) (_ *archive.Manifest, written bool, err error) {
	if err := archive.CheckOutput(output); err != nil {
		return nil, false, err
	}
	output = filepath.Clean(output)
	if target, err := filepath.EvalSymlinks(output); err == nil {
		output = target // or the link would be replaced, and not what it points to
	}
	pattern := "." + filepath.Base(output) + "."
	if err := archive.RemoveAbandoned(filepath.Dir(output), pattern); err != nil {
		return nil, false, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(output), pattern)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := &archive.Writer{Dir: dir, Recipients: b.Recipients}
	defer func() { err = errors.Join(err, w.End()) }()
	m := &archive.Manifest{Format: archive.Format, Taken: time.Now().UTC().Format(time.RFC3339), Operators: b.Operators}
	uids := map[types.UID]bool{}
	asked := len(b.Kinds)
	for i := 0; i < len(b.Kinds); i++ { // what is recorded is added while they are written
		b.begun = i
		k, err := b.kind(ctx, w, b.Kinds[i], uids)
		if i >= asked && cannotList(err) { // anybody may have written the status
			b.Unread = append(b.Unread, k.Name())
			continue
		}
		if i >= asked && err == nil && k.ResourceVersion == "" { // in no namespace
			continue
		}
		if apierrors.IsForbidden(err) {
			err = errors.Join(err, rightsError(ctx, b.Client, b.rights()))
		}
		if err != nil {
			return nil, false, fmt.Errorf("listing %s: %w", k.Name(), err)
		}
		m.Kinds = append(m.Kinds, *k)
	}
	if err := w.End(); err != nil {
		return nil, false, err
	}
	m.Files = w.Files
	slices.SortFunc(m.Files, func(a, b archive.File) int { return strings.Compare(a.Path, b.Path) })
	if err := m.Write(dir); err != nil {
		return nil, false, err
	}
	written, err = archive.Replace(dir, output, m)
	return m, written, err
}

func cannotList(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

// kind writes a kind at one resourceVersion: it begins again where the API server has compacted that away.
func (b *Backup) kind(
	ctx context.Context, w *archive.Writer, s Selection, uids map[types.UID]bool,
) (*archive.Kind, error) {
	k := &archive.Kind{APIVersion: s.GVK.GroupVersion().String(), Kind: s.GVK.Kind, Resource: s.Resource,
		Namespaced: s.Namespaced, HasStatus: s.HasStatus}
	if archive.IsSecret(k.GVR().GroupResource()) && len(b.Recipients) == 0 {
		return k, errors.New(
			"objects of this kind are only written encrypted, and the recipient is missing: set --age-recipient")
	}
	if s.Custom {
		u, err := b.Client.Resource(definitions).Get(ctx, k.Name(), metav1.GetOptions{})
		if err == nil {
			k.Definition, err = w.Definition(u)
		}
		if err != nil && !apierrors.IsNotFound(err) { // an aggregated API server has none
			return k, err
		}
	}
	for try := 1; ; try++ {
		written := map[types.UID]bool{}
		err := b.attempt(ctx, w, &s, k, uids, written)
		if !apierrors.IsResourceExpired(err) {
			maps.Copy(uids, written)
			return k, err
		}
		if try == tries {
			return k, fmt.Errorf("the pages grew too old %d times; try when the API server is less busy: %w", tries, err)
		}
		k.ResourceVersion, k.Objects, k.Terminating = "", 0, 0
		if err := w.Discard(k); err != nil {
			return k, err
		}
	}
}

// listed are the namespaces that are listed; "" is all at once.
func (s *Selection) listed() []string {
	if len(s.Namespaces) == 0 || !s.Namespaced {
		return []string{""}
	}
	return slices.Sorted(slices.Values(s.Namespaces))
}

// attempt writes a kind, and adds its objects to written; uids are those of the kinds before. Where owners and what
// they own are of this one kind, the owners have to be known first: an object may be listed before its owner.
func (b *Backup) attempt(
	ctx context.Context, w *archive.Writer, s *Selection, k *archive.Kind, uids, written map[types.UID]bool,
) error {
	isOwned := func(c Choice) bool { return c.Owned }
	owners := func(uid types.UID) bool { return uids[uid] || written[uid] }
	if unowned := slices.DeleteFunc(slices.Clone(s.Choices), isOwned); len(unowned) > 0 && len(unowned) < len(s.Choices) {
		if err := b.family(ctx, s, k, owners, written); err != nil {
			return err
		}
	}
	return b.eachListed(ctx, s, k, func(u *unstructured.Unstructured) error {
		switch {
		case !b.matchesAny(s.Choices, u, owners):
			return nil
		case u.GetDeletionTimestamp() != nil:
			k.Terminating++
			return nil
		}
		written[u.GetUID()] = true
		k.Objects++
		b.addRecorded(u)
		return w.Object(k, u)
	})
}

// addRecorded adds the kinds that the status of an object names.
func (b *Backup) addRecorded(u *unstructured.Unstructured) {
	if b.Recorded == nil {
		return
	}
	for _, more := range b.Recorded(u) {
		i := slices.IndexFunc(b.Kinds, func(s Selection) bool { return s.GVK.GroupKind() == more.GVK.GroupKind() })
		if i < 0 {
			more.recorded = more.Namespaces
			b.Kinds = append(b.Kinds, more)
		} else if s := &b.Kinds[i]; i > b.begun && s.Namespaced && len(s.Namespaces) > 0 &&
			!slices.Contains(s.Namespaces, more.Namespaces[0]) {
			s.Namespaces = append(slices.Clip(s.Namespaces), more.Namespaces...)
			s.recorded = append(slices.Clip(s.recorded), more.Namespaces...)
		}
	}
}

// family adds to found the objects that are chosen, and those of the same kind that they own, and so on. Each page is
// read once: what is listed before its owner waits for it.
func (b *Backup) family(
	ctx context.Context, s *Selection, k *archive.Kind, isOwner func(types.UID) bool, found map[types.UID]bool,
) error {
	waiting := map[types.UID][]types.UID{} // by owner
	return b.eachListed(ctx, s, k, func(u *unstructured.Unstructured) error {
		switch {
		case u.GetDeletionTimestamp() != nil:
		case b.matchesAny(s.Choices, u, isOwner):
			for next := []types.UID{u.GetUID()}; len(next) > 0; {
				uid := next[len(next)-1]
				found[uid] = true
				next = append(next[:len(next)-1], waiting[uid]...)
				delete(waiting, uid)
			}
		case b.matchesAny(s.Choices, u, func(types.UID) bool { return true }):
			for _, o := range contents.Owners(u, b.Operators) {
				waiting[o.UID] = append(waiting[o.UID], u.GetUID())
			}
		}
		return nil
	})
}

func (b *Backup) matchesAny(choices []Choice, u *unstructured.Unstructured, owners func(types.UID) bool) bool {
	return slices.ContainsFunc(choices, func(c Choice) bool { return b.matches(c, u, owners) })
}

// eachListed visits the objects in the kind's namespaces, one namespace after the other, all at the resourceVersion of
// the first page.
func (b *Backup) eachListed(
	ctx context.Context, s *Selection, k *archive.Kind, visit func(*unstructured.Unstructured) error,
) error {
	selector := ""
	if len(s.Choices) == 1 && s.Choices[0].Selector != nil {
		selector = s.Choices[0].Selector.String()
	}
	for _, namespace := range s.listed() {
		options := metav1.ListOptions{Limit: pageSize, LabelSelector: selector}
		if k.ResourceVersion != "" {
			options.ResourceVersion, options.ResourceVersionMatch = k.ResourceVersion, metav1.ResourceVersionMatchExact
		}
		for {
			page, err := b.Client.Resource(k.GVR()).Namespace(namespace).List(ctx, options)
			if cannotList(err) && slices.Contains(s.recorded, namespace) {
				if name := k.Name() + " in namespace " + namespace; !slices.Contains(b.Unread, name) {
					b.Unread = append(b.Unread, name)
				}
				break
			}
			if err != nil {
				return err
			}
			k.ResourceVersion = page.GetResourceVersion()
			for i := range page.Items {
				if err := visit(&page.Items[i]); err != nil {
					return err
				}
			}
			if page.GetContinue() == "" {
				break
			}
			options = metav1.ListOptions{Limit: pageSize, LabelSelector: selector, Continue: page.GetContinue()}
		}
	}
	return nil
}

func (b *Backup) matches(c Choice, u *unstructured.Unstructured, isOwner func(types.UID) bool) bool {
	if c.Selector != nil && !c.Selector.Matches(labels.Set(u.GetLabels())) || c.Namespaces != nil &&
		!c.Namespaces[u.GetNamespace()] {
		return false
	}
	if c.Rows != "" {
		return slices.ContainsFunc(c.Marks, func(key string) bool {
			_, uid, ok := contents.ParseMark(u.GetAnnotations()[key])
			return ok && strings.HasPrefix(uid, c.Rows+":")
		})
	}
	return !c.Owned || slices.ContainsFunc(contents.Owners(u, b.Operators), func(o contents.Owner) bool {
		return isOwner(o.UID)
	})
}

// rights are those that a backup needs.
func (b *Backup) rights() (list []right) {
	for i := range b.Kinds {
		s := &b.Kinds[i]
		for _, namespace := range s.listed() {
			list = append(list, right{verb: "list", resource: s.GVK.GroupVersion().
				WithResource(s.Resource), namespace: namespace})
		}
		if s.Custom {
			list = append(list, right{verb: "get", resource: definitions})
		}
	}
	return list
}
