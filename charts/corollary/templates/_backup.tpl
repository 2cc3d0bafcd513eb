{{/* Name of the hook's objects. No other release can be called so, for there is no dot in a full name. */}}
{{- define "corollary.backupName" -}}
{{- include "corollary.fullname" . }}.backup
{{- end -}}

{{- define "corollary.backupLabels" -}}
app.kubernetes.io/name: {{ include "corollary.name" . | trunc 55 | trimAll "-" }}-backup
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{/* Annotations of the hook's objects: a Job that fails stays, so that its log can be read, and the upgrade fails. */}}
{{- define "corollary.backupHook" -}}
helm.sh/hook: pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
helm.sh/hook-weight: "-5"
{{- end -}}

{{/* The file of the backup that is taken before this revision. */}}
{{- define "corollary.backupFile" -}}
/backup/{{ .Release.Name }}-before-{{ .Release.Revision }}.tar.zst
{{- end -}}

{{/* The rights of `corollary backup`, in the form of corollary.rights: to list what it writes, and to read its definitions. */}}
{{- define "corollary.backupRoles" -}}
{{- $roles := dict -}}
{{- $to := printf "%s/%s" .Release.Namespace (include "corollary.backupName" .) -}}
{{- $values := .Values.backup.beforeUpgrade -}}
{{- range $name, $config := include "corollary.operators" . | fromJson -}}
{{- if $config.watch -}}
  {{- $own := dict "root" $ "config" $config "roles" $roles "to" $to "operator" $name "verbs" (list "list") -}}
  {{- $up := include "corollary.rights.kind" (dict "root" $ "of" $config.watch) | fromJson -}}
  {{- $within := include "corollary.rights.places" (dict "within" $config.watch.namespaces "kind" $up) | fromJsonArray -}}
  {{- include "corollary.rights.allow" (merge (dict "group" $up.group "resource" $up.resource "places" $within) $own) -}}
  {{- if not (kindIs "invalid" $config.watch.namespaceSelector) -}}
    {{- include "corollary.rights.allow" (merge (dict "group" "" "resource" "namespaces" "places" (list "")) $own) -}}
  {{- end -}}
  {{- range prepend ($values.downstreams | ternary $config.downstreams list) $config.watch -}}
    {{- $kind := include "corollary.rights.kind" (dict "root" $ "of" .) | fromJson -}}
    {{- if $kind.custom -}}
      {{- include "corollary.rights.allow" (dict "roles" $roles "to" $to "operator" "" "places" (list "") "group" "apiextensions.k8s.io" "resource" "customresourcedefinitions" "names" (list (printf "%s.%s" $kind.resource $kind.group)) "verbs" (list "get")) -}}
    {{- end -}}
  {{- end -}}
  {{- if $values.downstreams -}}
    {{- range $config.downstreams -}}
      {{- if or $values.ageRecipients (ne (printf "%s %s" .apiVersion .kind) "v1 Secret") -}}
        {{- include "corollary.rights.target" (merge (dict "of" .) $own) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $roles -}}
{{- end -}}

{{/* The container that takes the backup. */}}
{{- define "corollary.backupContainer" -}}
- name: corollary
  image: {{ include "corollary.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
    - backup
    - --config=/etc/corollary
    - --output={{ include "corollary.backupFile" . }}
    {{- if .Values.backup.beforeUpgrade.downstreams }}
    - --downstreams
    {{- range $i, $recipient := .Values.backup.beforeUpgrade.ageRecipients }}
    {{- if not $i }}
    - --secrets
    {{- end }}
    - --age-recipient={{ $recipient }}
    {{- end }}
    {{- end }}
    {{- range .Values.extraArgs }}
    {{- if or (hasPrefix "--set=" .) (hasPrefix "--kube-api-" .) }}
    - {{ . | quote }}
    {{- end }}
    {{- end }}
  env:
    {{- include "corollary.env" . | nindent 4 }}
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    {{- toYaml .Values.securityContext | nindent 4 }}
  volumeMounts:
    - {name: config, mountPath: /etc/corollary, readOnly: true}
    - {name: backup, mountPath: /backup}
    {{- if .Values.backup.beforeUpgrade.command }}
    - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
    {{- end }}
{{- end -}}
