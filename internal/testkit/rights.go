package testkit

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RightsInForce returns once every role and binding that was written before the call is in force: the API server
// watches each of the four kinds. It writes one more of each, which those watches deliver after the others, and waits
// until they are in force. Any goroutine may call it.
func RightsInForce(ctx context.Context) (err error) {
	c, err := sharedClients()
	if err != nil {
		return err
	}
	const group, verb, namespace = "rights.example.com", "get", metav1.NamespaceDefault
	user := fmt.Sprintf("rights-%d", counter.Add(1))
	rule := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}}
	}
	within := metav1.ObjectMeta{Namespace: namespace, Name: user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	for _, marker := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rule("everywhere")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}},
		&rbacv1.Role{ObjectMeta: within, Rules: rule("here")},
		&rbacv1.RoleBinding{ObjectMeta: within, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}},
	} {
		if err := c.typed.Create(ctx, marker); err != nil {
			return fmt.Errorf("marking the present rights: %w", err)
		}
		defer func() {
			if gone := c.typed.Delete(context.WithoutCancel(ctx), marker); gone != nil {
				err = errors.Join(err, fmt.Errorf("taking a mark of rights away: %w", gone))
			}
		}()
	}
	for _, resource := range []string{"everywhere", "here"} {
		asked := authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: group, Resource: resource, Verb: verb, Namespace: namespace}}
		err := wait.PollUntilContextTimeout(ctx, pollInterval, Patience, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: asked}
			err := c.typed.Create(ctx, review)
			return review.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("waiting until rights are in force: %w", err)
		}
	}
	return nil
}
