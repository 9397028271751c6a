;;; eglot.el --- A session in Emacs: a finding, the page of its rule, its fix  -*- lexical-binding: t -*-

;; emacs -Q --batch -l CONFIGURATION -l eglot.el FILE

(require 'eglot)
(require 'cl-lib)

(defun say (format &rest arguments)
  (princ (concat (apply #'format format arguments) "\n")))

(defun wait-for (what condition)
  "Wait for a minute until CONDITION is met; end with a reason, which names WHAT, if it is not."
  (let ((began (float-time)) (found nil))
    (while (and (not (setq found (funcall condition))) (< (- (float-time) began) 60))
      (accept-process-output nil 0.1))
    (unless found
      (say "FAIL no %s in\n%s" what (buffer-string))
      (kill-emacs 1))
    found))

(setq eglot-sync-connect 30)
(find-file (pop command-line-args-left))
;; Batch mode runs no hooks after commands, where `eglot-ensure' would act.
(call-interactively #'eglot)

(let ((found (wait-for "finding" (lambda () (flymake-start) (flymake-diagnostics)))))
  (unless (= (length found) 1) (say "FAIL %d findings" (length found)) (kill-emacs 1))
  (say "ok %d %s" (line-number-at-pos (flymake-diagnostic-beg (car found))) (flymake-diagnostic-text (car found))))

(goto-char (point-min))
(search-forward "float32(")
(backward-char 3)
(let ((page nil))
  (eglot-hover-eldoc-function (lambda (text &rest _) (setq page text)))
  (wait-for "page of the rule" (lambda () (and page (string-search "dtype-called" page))))
  (say "ok page of the rule"))

(let* ((actions (append (eglot-code-actions (point) (point) "quickfix" nil) nil))
       (fix (cl-find-if (lambda (action) (plist-get action :isPreferred)) actions)))
  (say "ok actions: %s" (mapconcat (lambda (action) (plist-get action :title)) actions " | "))
  (eglot-execute (eglot-current-server) fix))
(wait-for "fixed line"
          (lambda () (save-excursion (goto-char (point-min)) (search-forward "factor = tl.cast(n, tl.float32)" nil t))))
;; Saving sends the change, for which Emacs waits until it is idle: in batch mode it never is.
(save-buffer)
(wait-for "end of the finding" (lambda () (flymake-start) (null (flymake-diagnostics))))
(eglot-shutdown (eglot-current-server))
(say "ok done")
