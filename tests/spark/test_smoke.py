from lake import MONDAY, column, contract, topic_of
from datetime import timedelta
import pytest, time

@pytest.mark.parametrize("n", range(4))
def test_smoke(lake, n):
    t=time.time()
    lake.commit(topic_of(("n", "int")), {"id": "a", "at": MONDAY, "n": 1}, {"id": "b", "at": MONDAY + timedelta(days=1), "n": 2})
    t1=time.time()
    run = lake.export(contract(column("id"), column("n", "integer")))
    print(run.csv(), run.cells(), t1-t, time.time()-t1, run.record.phases)
    assert run.column("n") == ["1", "2"]
    t1=time.time()
    run = lake.export(contract(column("id"), column("n", "integer")))
    print(run.record.phases, time.time()-t1)
