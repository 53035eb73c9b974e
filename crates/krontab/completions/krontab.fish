# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_krontab_global_optspecs
    string join \n h/help V/version
end

function __fish_krontab_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_krontab_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_krontab_using_subcommand
    set -l cmd (__fish_krontab_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c krontab -n "__fish_krontab_needs_command" -s h -l help -d 'Print help'
complete -c krontab -n "__fish_krontab_needs_command" -s V -l version -d 'Print version'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "lint" -d 'Check krontab files, and point at every mistake'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "explain" -d 'Show how the time of a period was chosen: its window, its seed, its constraints'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "next" -d 'Show the next periods of a job, and when in their windows they run'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "prev" -d 'Show the last periods of a job, the newest first'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "why" -d 'Say why a job does, or does not, run at a time: field by field, and what else stands in the way'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "describe" -d 'Say in a sentence what a cron expression means, and when it occurs next'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "fuzzy" -d 'Compile a phrase such as `daily around 14:00` for an identifier'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "list" -d 'List the installed jobs, and when each runs next'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "add" -d 'Check a krontab file and install it where krond reads it'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "remove" -d 'Remove an installed job, or an installed file with all its jobs'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "fmt" -d 'Write krontab files in one canonical spelling'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "simulate" -d 'Show how many jobs start in every minute or hour, before and after spreading'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "import" -d 'Turn crontabs, systemd timers and Kubernetes `CronJob`s into a krontab, and tell what would differ'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "diff" -d 'Show, job by job, which periods of two krontabs fire differently, and when'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "ical" -d 'Print the future schedule as a calendar (iCalendar, RFC 5545), one event for each start'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "batch" -d 'Answer many questions, one JSON object a line, in the order they come'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "man" -d 'Print the manual page, or write the pages of all commands into a directory'
complete -c krontab -n "__fish_krontab_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c krontab -n "__fish_krontab_using_subcommand lint" -l file -d 'A krontab file, or a directory of them; `-` is standard input. May be repeated' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand lint" -l as -d 'Check the file, or the files of the directory, as if installed at this path: which phrases fall together depends on it' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand lint" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand lint" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand lint" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l at -d 'An instant, such as 2026-03-01T12:00:00Z' -r
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l file -d 'The krontab file that has the job; `-` is standard input' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l as -d 'Answer as if the file were installed at this path: chosen times depend on it. Without it, jobs from standard input have identities that begin with `-:`' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l identity -d 'Answer as if the job had this identity, instead of `<absolute path>:<name>`' -r
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l window -d 'The length of the window, without a file' -r
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l mode -d 'Where the window lies, without a file' -r -f -a "after\t''
around\t''
before\t''"
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l dist -d 'The distribution, without a file: uniform, or such as skewLate,shape=3' -r
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l seed -d 'The seed strategy, without a file' -r -f -a "stable\t''
daily\t''
weekly\t''"
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l salt -d 'The salt, without a file' -r
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l tz -d 'The time zone, without a file' -r
complete -c krontab -n "__fish_krontab_using_subcommand explain" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand next" -l file -d 'The krontab file that has the job; `-` is standard input' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand next" -l as -d 'Answer as if the file were installed at this path: chosen times depend on it. Without it, jobs from standard input have identities that begin with `-:`' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand next" -l identity -d 'Answer as if the job had this identity, instead of `<absolute path>:<name>`' -r
complete -c krontab -n "__fish_krontab_using_subcommand next" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand next" -l count -d 'How many periods to show, at most 10080' -r
complete -c krontab -n "__fish_krontab_using_subcommand next" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand next" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand prev" -l file -d 'The krontab file that has the job; `-` is standard input' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand prev" -l as -d 'Answer as if the file were installed at this path: chosen times depend on it. Without it, jobs from standard input have identities that begin with `-:`' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand prev" -l identity -d 'Answer as if the job had this identity, instead of `<absolute path>:<name>`' -r
complete -c krontab -n "__fish_krontab_using_subcommand prev" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand prev" -l count -d 'How many periods to show, at most 10080' -r
complete -c krontab -n "__fish_krontab_using_subcommand prev" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand prev" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand why" -l file -d 'The krontab file that has the job; `-` is standard input' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand why" -l as -d 'Answer as if the file were installed at this path: chosen times depend on it. Without it, jobs from standard input have identities that begin with `-:`' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand why" -l identity -d 'Answer as if the job had this identity, instead of `<absolute path>:<name>`' -r
complete -c krontab -n "__fish_krontab_using_subcommand why" -l at -d 'An instant, such as 2026-03-08T07:30:00Z, or a local time, such as 2026-03-08T02:30, which is in the job\'s zone, or 2026-03-08T02:30[Europe/Paris]' -r
complete -c krontab -n "__fish_krontab_using_subcommand why" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand why" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l dialect -d 'The cron dialect of the expression' -r -f -a "kron\t''
ojs\t''
posix\t''"
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l tz -d 'The time zone of the expression, such as Europe/Paris [default: UTC]' -r
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l next -d 'How many occurrences to list, at most 10080' -r
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l file -d 'A krontab file to look for a job in; `-` is standard input' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l as -d 'Answer as if the file were installed at this path: chosen times depend on it. Without it, jobs from standard input have identities that begin with `-:`' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l identity -d 'Answer as if the job had this identity, instead of `<absolute path>:<name>`' -r
complete -c krontab -n "__fish_krontab_using_subcommand describe" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand describe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l identifier -d 'Whose schedule it is, such as /etc/krond.d/jobs:report' -r
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l repo -d 'The repository of a file whose schedule it is, such as github/gh-aw' -r
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l path -d 'The path of that file in its repository' -r
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l tz -d 'The time zone that the phrase is in [default: UTC]' -r
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l next -d 'How many occurrences to list' -r
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l extensions -d 'Understand Kron\'s own additions, such as `bi-weekly exactly` and `daily on weekdays`'
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -l conformance -d 'Run the tests of the specification, and say which level is reached'
complete -c krontab -n "__fish_krontab_using_subcommand fuzzy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand list" -l config -d 'The directory [default: /etc/krond.d for root, otherwise krond in `XDG_CONFIG_HOME` or ~/.config]' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand list" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand list" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand add" -l file -d 'The krontab file; `-` is standard input' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand add" -l config -d 'The directory [default: /etc/krond.d for root, otherwise krond in `XDG_CONFIG_HOME` or ~/.config]' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand add" -l name -d 'The name it gets there; identities begin with it [default: its own]' -r
complete -c krontab -n "__fish_krontab_using_subcommand add" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand add" -l force -d 'Replace a file of that name'
complete -c krontab -n "__fish_krontab_using_subcommand add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand remove" -l config -d 'The directory [default: /etc/krond.d for root, otherwise krond in `XDG_CONFIG_HOME` or ~/.config]' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand remove" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand remove" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand fmt" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand fmt" -l check -d 'Write nothing; tell which files are spelled differently'
complete -c krontab -n "__fish_krontab_using_subcommand fmt" -l write -d 'Write the files, instead of printing them'
complete -c krontab -n "__fish_krontab_using_subcommand fmt" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l from -d 'The first minute, such as 2026-03-01T00:00:00Z [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l to -d 'The minute after the last; at most five years after --from [default: a week after --from]' -r
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l per -d 'What starts are counted in' -r -f -a "minute\t''
hour\t''"
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l tz -d 'The time zone of the hours of the day and of the week that are shown' -r
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l as -d 'Answer as if the file, or the directory, were installed at this path: chosen times depend on it' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l svg -d 'Also write the load curve into this file, as a picture' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l html -d 'Also write a page into this file: the load curve, a week of hours, and who makes the peaks' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l propose -d 'Look for windows that lower the peak, and print them as a patch, or write it into this file' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l window-max -d 'The longest window that is proposed, in whole minutes' -r
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand simulate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand import" -l from -d 'What the files are [default: guessed from path and content, and told]' -r -f -a "crontab\t'A user\'s crontab, as `crontab -l` prints it'
system\t'/etc/crontab or a file of /etc/cron.d, with a user after the five fields'
systemd\t'A .timer unit of systemd'
kubernetes\t'A manifest with `CronJob`s of Kubernetes, in YAML or JSON'"
complete -c krontab -n "__fish_krontab_using_subcommand import" -l tz -d 'The time zone of the host, or of the controller of the cluster' -r
complete -c krontab -n "__fish_krontab_using_subcommand import" -l at -d 'The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand import" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand diff" -l from -d 'The first minute, such as 2026-03-01T00:00:00Z [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand diff" -l to -d 'The minute after the last; at most five years after --from [default: a week after --from]' -r
complete -c krontab -n "__fish_krontab_using_subcommand diff" -l as -d 'Answer as if both were installed at this path: chosen times depend on it' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand diff" -l count -d 'How many differences to list of each job, at most 10080' -r
complete -c krontab -n "__fish_krontab_using_subcommand diff" -l format -d 'How the answer is written: lines of text, or one JSON object' -r -f -a "text\t''
json\t''"
complete -c krontab -n "__fish_krontab_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand ical" -l from -d 'The first minute, such as 2026-03-01T00:00:00Z [default: now]' -r
complete -c krontab -n "__fish_krontab_using_subcommand ical" -l to -d 'The minute after the last; at most five years after --from [default: a week after --from]' -r
complete -c krontab -n "__fish_krontab_using_subcommand ical" -l count -d 'The most events, at most 10080' -r
complete -c krontab -n "__fish_krontab_using_subcommand ical" -l job -d 'Only this job. May be repeated' -r
complete -c krontab -n "__fish_krontab_using_subcommand ical" -l as -d 'Answer as if the file, or the directory, were installed at this path: chosen times depend on it' -r -F
complete -c krontab -n "__fish_krontab_using_subcommand ical" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand batch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c krontab -n "__fish_krontab_using_subcommand completions" -s h -l help -d 'Print help'
complete -c krontab -n "__fish_krontab_using_subcommand man" -s h -l help -d 'Print help'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "lint" -d 'Check krontab files, and point at every mistake'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "explain" -d 'Show how the time of a period was chosen: its window, its seed, its constraints'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "next" -d 'Show the next periods of a job, and when in their windows they run'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "prev" -d 'Show the last periods of a job, the newest first'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "why" -d 'Say why a job does, or does not, run at a time: field by field, and what else stands in the way'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "describe" -d 'Say in a sentence what a cron expression means, and when it occurs next'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "fuzzy" -d 'Compile a phrase such as `daily around 14:00` for an identifier'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "list" -d 'List the installed jobs, and when each runs next'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "add" -d 'Check a krontab file and install it where krond reads it'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "remove" -d 'Remove an installed job, or an installed file with all its jobs'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "fmt" -d 'Write krontab files in one canonical spelling'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "simulate" -d 'Show how many jobs start in every minute or hour, before and after spreading'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "import" -d 'Turn crontabs, systemd timers and Kubernetes `CronJob`s into a krontab, and tell what would differ'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "diff" -d 'Show, job by job, which periods of two krontabs fire differently, and when'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "ical" -d 'Print the future schedule as a calendar (iCalendar, RFC 5545), one event for each start'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "batch" -d 'Answer many questions, one JSON object a line, in the order they come'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "man" -d 'Print the manual page, or write the pages of all commands into a directory'
complete -c krontab -n "__fish_krontab_using_subcommand help; and not __fish_seen_subcommand_from lint explain next prev why describe fuzzy list add remove fmt simulate import diff ical batch completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
