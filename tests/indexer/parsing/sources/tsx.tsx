import React, { useState } from 'react';

export const App: React.FC<Props> = ({ a }) => {
  const [x] = useState(1);
  const inner = () => <b onClick={() => go(x)} />;
  return <Foo.Bar a={inner()}><Child /></Foo.Bar>;
};
