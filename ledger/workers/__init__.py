"""Workers in processes of their own. Celery is a doorbell; the database is the truth.

The relay takes due rows of the outbox and sends one message for each; a worker that gets a message claims the row in
the database, works it and marks it done. A message that is lost is sent again, one that comes twice claims nothing.
"""
