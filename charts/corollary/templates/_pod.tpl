{{/* How long a duration such as 1m30s is, in milliseconds. */}}
{{- define "corollary.milliseconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+[a-z]+" . -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $sum = addf $sum (mulf (float64 (trimSuffix $unit .)) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit)) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{/* The timings of the election, where they are given; those that the command would refuse are refused here. */}}
{{- define "corollary.electionArgs" -}}
{{- $given := .Values.leaderElection -}}
{{- $lease := default "15s" $given.leaseDuration -}}
{{- $deadline := default "10s" $given.renewDeadline -}}
{{- $period := default "2s" $given.retryPeriod -}}
{{- $ms := dict -}}
{{- range list $lease $deadline $period -}}
{{- $_ := set $ms . (include "corollary.milliseconds" . | float64) -}}
{{- end -}}
{{- $leaseMs := get $ms $lease -}}
{{- if or (lt $leaseMs 1000.0) (ne (mulf (floor (divf $leaseMs 1000)) 1000) $leaseMs) -}}
{{- fail (printf "leaderElection.leaseDuration is %s: whole seconds are needed, at least one" $lease) -}}
{{- else if le $leaseMs (get $ms $deadline) -}}
{{- fail (printf "leaderElection.renewDeadline is %s: it must be shorter than leaseDuration, which is %s" $deadline $lease) -}}
{{- else if or (eq (get $ms $period) 0.0) (le (get $ms $deadline) (mulf 1.2 (get $ms $period))) -}}
{{- fail (printf "leaderElection.retryPeriod is %s: 1.2 times that must be shorter than renewDeadline, which is %s, and it must be longer than 0" $period $deadline) -}}
{{- end -}}
{{- range $flag, $value := dict "lease-duration" $given.leaseDuration "renew-deadline" $given.renewDeadline "retry-period" $given.retryPeriod -}}
{{- with $value }}
- --leader-election-{{ $flag }}={{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/*
What is wrong with giving a flag by hand that the chart or another value gives: a flag that is there twice is the last one's,
and the rights, the probes and the Job of helm uninstall would go by the first. {flag, given: how it is given}
*/}}
{{- define "corollary.reserved" -}}
{{- $values := dict "c" "operatorFiles" "config" "operatorFiles" "leader-elect" "replicas" "leader-election-id" "leaderElection.id"
  "workers" "workers" "shards" "shards" "metrics-bind-address" "metrics.port" "health-probe-bind-address" "probes.port" "zap-log-level" "log.level"
  "zap-encoder" "log.format" "webhook-bind-address" "conversion.port" "webhook-service" "conversion" "webhook-secret" "conversion"
  "activation-identity" "activation.identity" "webhook-url" "conversion" "webhook-secret-read-only" "conversion.certificate" -}}
{{- if has .flag (list "n" "namespace" "leader-election-namespace") -}}
  {{- fail (printf "%s: leave it out, the Lease and events are in the namespace of the release, where the rights are" .given) -}}
{{- else if hasKey $values .flag -}}
  {{- fail (printf "%s: leave it out and set the value %s" .given (get $values .flag)) -}}
{{- end -}}
{{- end -}}

{{/* The flags that are given by hand, as a list. */}}
{{- define "corollary.extraArgs" -}}
{{- range .Values.extraArgs -}}
  {{- $flag := regexFind "^--?[-a-z]+" . | trimAll "-" -}}
  {{- if hasPrefix "-" . | and (not (hasPrefix "--" .)) -}}
    {{- $flag = trunc 1 $flag -}}
  {{- end -}}
  {{- include "corollary.reserved" (dict "flag" $flag "given" (printf "extraArgs has %s" .)) -}}
{{- end -}}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The Secret with the webhook's certificate, and whether somebody else keeps it. */}}
{{- define "corollary.webhookSecret" -}}
{{- $certificate := .Values.conversion.certificate -}}
{{- if and $certificate.existingSecret $certificate.certManager.enabled -}}
  {{- fail "conversion.certificate has existingSecret and certManager: cert-manager keeps a Secret of its own, leave one of them out" -}}
{{- end -}}
{{- if and $certificate.certManager.issuerRef (not $certificate.certManager.enabled) -}}
  {{- fail "conversion.certificate.certManager.issuerRef is set and has no effect without conversion.certificate.certManager.enabled: set that, too" -}}
{{- end -}}
{{- default (printf "%s-webhook" (include "corollary.fullname" .)) $certificate.existingSecret -}}
{{- end -}}
{{- define "corollary.webhookSecretReadOnly" -}}
{{- if or .Values.conversion.certificate.existingSecret .Values.conversion.certificate.certManager.enabled }}true{{ end -}}
{{- end -}}

{{/* The command line of the container, as a list. */}}
{{- define "corollary.args" -}}
{{- if eq (toString .Values.metrics.port) (toString .Values.probes.port) -}}
{{- fail (printf "metrics.port and probes.port are both %v: give each another port" .Values.probes.port) -}}
{{- end -}}
{{- if and .Values.conversion.crds (has (toString .Values.conversion.port) (list (toString .Values.metrics.port) (toString .Values.probes.port))) -}}
{{- fail (printf "conversion.port is %v, as metrics.port or probes.port: give each another port" .Values.conversion.port) -}}
{{- end -}}
{{- range $path, $text := .Values.files -}}
{{- if and $.Values.shards (regexMatch "^[^/]*[.]ya?ml$" $path) -}}
{{- $file := fromYaml $text -}}
{{- if and (eq (toString $file.kind) "Activation") (not $file.dns) -}}
{{- fail (printf "shards is %v, and files.%s is an activation with a lock, which one process of a cluster holds, so that the others would not write for their shards: leave shards out, or use an activation with dns" $.Values.shards ($path | replace "." "\\.")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
- run
- --config=/etc/corollary
- --namespace={{ .Release.Namespace }}
- --leader-elect
- --leader-election-id={{ include "corollary.leaderElectionId" . }}
{{- include "corollary.electionArgs" . }}
{{- with .Values.shards }}
- --shards={{ . }}
{{- end }}
- --workers={{ .Values.workers }}
- --metrics-bind-address=:{{ .Values.metrics.port }}
- --health-probe-bind-address=:{{ .Values.probes.port }}
- --zap-log-level={{ .Values.log.level }}
- --zap-encoder={{ .Values.log.format }}
{{- if .Values.conversion.crds }}
- --webhook-bind-address=:{{ .Values.conversion.port }}
- --webhook-service={{ .Release.Namespace }}/{{ include "corollary.fullname" . }}-webhook:443
- --webhook-secret={{ .Release.Namespace }}/{{ include "corollary.webhookSecret" . }}
{{- if include "corollary.webhookSecretReadOnly" . }}
- --webhook-secret-read-only
{{- end }}
{{- end }}
{{- with .Values.activation.identity }}
- --activation-identity={{ . }}
{{- end }}
{{- include "corollary.extraArgs" . }}
{{- end -}}

{{/*
What Go's memory limit is to be: nine tenths of the container's, in bytes, since the process holds more than Go counts.
Empty where there is no limit, or one of another form than NUMBER and Ki, Mi, Gi, Ti, k, M, G, T or nothing.
*/}}
{{- define "corollary.memoryLimit" -}}
{{- $limit := toString (dig "limits" "memory" "" (default dict .Values.resources)) -}}
{{- if regexMatch "^[0-9]+([KMGT]i|[kMGT])?$" $limit -}}
{{- $factors := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $number := regexFind "^[0-9]+" $limit -}}
{{- div (mul $number (get $factors (trimPrefix $number $limit)) 9) 10 -}}
{{- end -}}
{{- end -}}

{{/*
The container's environment, as a list. What the values name is theirs alone: no name may be there twice. COROLLARY_ and the
name of a flag in capitals gives that flag.
*/}}
{{- define "corollary.env" -}}
{{- $env := list -}}
{{- $limit := include "corollary.memoryLimit" . -}}
{{- range .Values.env -}}
{{- if eq .name "GOMEMLIMIT" }}{{ $limit = "" }}{{ end -}}
{{- if hasPrefix "COROLLARY_" .name -}}
{{- include "corollary.reserved" (dict "flag" (trimPrefix "COROLLARY_" .name | replace "_" "-" | lower) "given" (printf "env has %s" .name)) -}}
{{- end -}}
{{- end -}}
{{- with $limit -}}
{{- $env = append $env (dict "name" "GOMEMLIMIT" "value" .) -}}
{{- end -}}
{{- toYaml (concat $env (default list .Values.env)) -}}
{{- end -}}

{{/*
The volume of config files. It names the ConfigMap as a whole, so that a new config reaches running pods. A ConfigMap's keys
have no folders: files in folders stand in a second one, and are named one by one. {root, name}
*/}}
{{- define "corollary.volume" -}}
{{- $folders := include "corollary.folderFiles" .root | fromJson -}}
{{- if $folders -}}
projected:
  sources:
    - configMap:
        name: {{ .name | toYaml }}
    - configMap:
        name: {{ .name }}-files
        items:
          {{- range $path, $text := $folders }}
          - {key: {{ include "corollary.fileKey" $path | quote }}, path: {{ $path | quote }}}
          {{- end }}
{{- else -}}
configMap:
  name: {{ .name | toYaml }}
{{- end -}}
{{- end -}}
