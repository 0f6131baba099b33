-- Wake-ups: a transaction that queues something to be dispatched now tells every host that listens. Hosts look at the
-- queue at intervals all the same; a connection that sets `trax.wake_ups` to off tells nobody.

CREATE OR REPLACE FUNCTION notify_queued_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('trax.wake_ups', TRUE) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('trax_queued_work', '');
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION notify_inserted_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('trax.wake_ups', TRUE) IS DISTINCT FROM 'off' AND EXISTS (SELECT 1 FROM inserted
        WHERE status = 'queued' AND confirmed_at IS NOT NULL AND scheduled_at IS NULL) THEN
        PERFORM pg_notify('trax_queued_work', '');
    END IF;
    RETURN NULL;
END
$$;

-- Once for each statement, however many rows it inserts.
CREATE OR REPLACE TRIGGER tr_work_queue_inserted AFTER INSERT ON work_queue
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION notify_inserted_work();

-- Confirmed, or brought forward. Postgres joins equal notifications of a transaction.
CREATE OR REPLACE TRIGGER tr_work_queue_released AFTER UPDATE OF confirmed_at, scheduled_at ON work_queue
    FOR EACH ROW WHEN (NEW.status = 'queued' AND NEW.confirmed_at IS NOT NULL AND NEW.scheduled_at IS NULL
        AND (OLD.confirmed_at IS NULL OR OLD.scheduled_at IS NOT NULL))
    EXECUTE FUNCTION notify_queued_work();
