{{/*
Whether helm uninstall takes finalizers off: empty where no config names one, or nobody has the rights for it.
*/}}
{{- define "corollary.release" -}}
{{- if and .Values.release.onUninstall (or .Values.rbac.create .Values.release.serviceAccountName) (include "corollary.releaseRights" (dict "root" . "to" "/") | fromJson) -}}
true
{{- end -}}
{{- end -}}

{{- define "corollary.releaseName" -}}
{{- include "corollary.fullname" . }}-release
{{- end -}}

{{/*
The hook's ServiceAccount, and what goes with it. No other release can be called so, for there is no dot in a full name: helm
deletes what hooks have made without looking whose it is.
*/}}
{{- define "corollary.releaseAccount" -}}
{{- include "corollary.fullname" . }}.release
{{- end -}}

{{/* Labels of the hook's pod, which is none of those that the Service and the PodDisruptionBudget are about. */}}
{{- define "corollary.releaseLabels" -}}
app.kubernetes.io/name: {{ include "corollary.name" . | trunc 55 | trimAll "-" }}-release
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{/*
Annotations of the hook's objects. They go when all of it has succeeded. Where the Job fails it stays, so that its log can be
read, and goes with its time to live, or before the next try.
*/}}
{{- define "corollary.releaseHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
helm.sh/hook-weight: "-5"
{{- end -}}

{{/*
The rights of the hook, in the form of corollary.rights: to take the processes away, to hold their Lease meanwhile and to
delete it in the end, and to take finalizers off.
*/}}
{{- define "corollary.releaseRoles" -}}
{{- $to := printf "%s/%s" .Release.Namespace (include "corollary.releaseAccount" .) -}}
{{- $roles := include "corollary.releaseRights" (dict "root" . "to" $to) | fromJson -}}
{{- $own := dict "roles" $roles "to" $to "operator" "" "places" (list .Release.Namespace) -}}
{{- $leases := merge (dict "group" "coordination.k8s.io" "resource" "leases") $own -}}
{{- include "corollary.rights.allow" (merge (dict "verbs" (list "create")) $leases) -}}
{{- include "corollary.rights.allow" (merge (dict "names" (list (include "corollary.leaderElectionId" .)) "verbs" (list "get" "update" "delete")) $leases) -}}
{{- include "corollary.rights.allow" (merge (dict "group" "apps" "resource" "deployments/scale" "names" (list (include "corollary.fullname" .)) "verbs" (list "patch")) $own) -}}
{{- toJson $roles -}}
{{- end -}}
