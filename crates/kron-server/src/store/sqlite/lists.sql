-- Step 3. Lists are read in the order of an index, whatever they are restricted to.
DROP INDEX jobs_in_queue;
CREATE INDEX jobs_in_queue ON jobs (queue, state, id);
CREATE INDEX jobs_in_state ON jobs (state, id);
CREATE INDEX jobs_of_type ON jobs (type, id);
CREATE INDEX crons_in_order ON crons (enabled, name);
