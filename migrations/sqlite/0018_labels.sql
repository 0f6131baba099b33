-- What people say a decision should have been. Decisions themselves are never changed.

CREATE TABLE IF NOT EXISTS decision_label (
    decision_id INTEGER PRIMARY KEY REFERENCES decision (id) ON DELETE CASCADE,
    -- The option's or level's name, `yes` or `no`.
    correct TEXT NOT NULL,
    labelled_by TEXT NOT NULL,
    labelled_at INTEGER NOT NULL
) STRICT;
